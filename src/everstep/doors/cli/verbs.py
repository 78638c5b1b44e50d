"""Commands by name, loaded when called: `everstep --help` reads this table and imports none of them."""

import gc
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NamedTuple

import click

from everstep.domain.suggest import suggest
from everstep.doors.cli.session import global_options


class Entry(NamedTuple):
    """Where a command lives, and its line in the list."""

    module: str
    line: str


_ROOM: Final = "everstep.doors.cli."

SECTIONS: Final[Mapping[str, Mapping[str, Entry]]] = {
    "Start": {
        "demo": Entry("demo_command", "See a task survive being killed; offline, a few seconds"),
        "init": Entry("init_command", "Make a folder with a plan, a tool and a configuration"),
        "run": Entry("run_command", "Carry out a plan, or go on with it where it stopped"),
        "serve": Entry("serve_command", "Carry tasks, and answer programs and browsers"),
        "worker": Entry("worker_command", "Carry tasks, beside as many others as you like"),
        "mcp": Entry("mcp_command", "Answer MCP clients: workflows as prompts, tasks, tools"),
        "doctor": Entry("doctor_command", "Check this machine and this store"),
    },
    "Look": {
        "ls": Entry("tasks_command", "List tasks, newest first"),
        "show": Entry("show_command", "One task, one step, or a part of it"),
        "watch": Entry("watch_command", "Follow a task"),
        "logs": Entry("logs_command", "What tools logged; errors of all tasks"),
        "stats": Entry("stats_command", "Success, times, what is slow and what has become slower"),
        "export": Entry("export_command", "Tasks or events as CSV or JSON, for other programs"),
        "signal": Entry("signal_command", "Tell steps that wait for an event that it has come"),
        "breakers": Entry("breakers_command", "What holds calls back, and how to let them pass"),
    },
    "Steer": {
        "pause": Entry("steer_command", "Stop a task at the next safe point"),
        "resume": Entry("steer_command", "Go on with a task"),
        "cancel": Entry("steer_command", "End a task"),
        "retry": Entry("rework_command", "Do a task again from a step; what came before stands"),
        "fork": Entry("rework_command", "A new task with the outcomes of another"),
        "patch": Entry("rework_command", "Change steps that have not begun"),
        "undo": Entry("rework_command", "Take back what a task did"),
    },
    "Answer": {
        "inbox": Entry("inbox_command", "What waits for someone"),
        "approve": Entry("approve_command", "Allow a call that waits for it"),
        "reject": Entry("approve_command", "Refuse a call that waits for approval"),
        "answer": Entry("inbox_command", "Answer a pause"),
    },
    "Write": {
        "plan": Entry("plan_command", "List, check, format and show plans; their JSON Schema"),
        "tools": Entry("tools_command", "What a step can call"),
        "torture": Entry("torture_command", "Kill your own plan at every boundary, and judge it"),
        "explain": Entry("explain_command", "What an error code means, and what to do"),
    },
    "Keep": {
        "token": Entry("token_command", "Tokens for programs that ask over HTTP"),
        "open": Entry("token_command", "Open the served engine in a browser, signed in"),
        "config": Entry("config_command", "Settings in force, and who said so"),
        "db": Entry("db_command", "Figures, integrity and copies of the store"),
        "completion": Entry("completion_command", "Completion for your shell"),
        "version": Entry("version_command", "Versions of everstep and its parts"),
    },
}
COMMANDS: Final = {name: entry for entries in SECTIONS.values() for name, entry in entries.items()}

SYNONYMS: Final = {
    **dict.fromkeys(("start", "exec", "execute", "submit", "continue"), "run"),
    **dict.fromkeys(("list", "ps", "tasks", "status"), "ls"),
    **dict.fromkeys(("log", "tail"), "logs"),
    **dict.fromkeys(("stop", "kill", "abort", "rm", "delete"), "cancel"),
    **dict.fromkeys(("rerun", "redo", "again"), "retry"),
    **dict.fromkeys(("copy", "clone", "branch"), "fork"),
    **dict.fromkeys(("edit", "modify"), "patch"),
    **dict.fromkeys(("revert", "rollback", "compensate"), "undo"),
    **dict.fromkeys(("get", "describe", "info", "inspect"), "show"),
    **dict.fromkeys(("follow", "attach"), "watch"),
    **dict.fromkeys(("check", "validate", "lint", "fmt", "schema"), "plan"),
    **dict.fromkeys(("allow", "accept", "confirm"), "approve"),
    **dict.fromkeys(("deny", "refuse", "decline"), "reject"),
    "reply": "answer",
    **dict.fromkeys(("pauses", "questions"), "inbox"),
    **dict.fromkeys(("new", "create"), "init"),
    "backup": "db",
    **dict.fromkeys(("settings", "options", "env"), "config"),
    **dict.fromkeys(("metrics", "figures", "report"), "stats"),
    "help": "--help",
}
"""What people write from habit. Suggested, never accepted."""

SENTENCE_MAX: Final = 300
_HELP: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class UnknownCommand(click.UsageError):
    """No command of that name."""

    def __init__(self, name: str, known: Sequence[str], context: click.Context) -> None:
        super().__init__(f"no command '{name}'", context)
        self.suggestion = suggest(name, known, SYNONYMS if context.parent is None else None)


class Verb(click.Command):
    """A command that takes the global options too, wherever they stand."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- click's own arguments
        kwargs["context_settings"] = {**_HELP, **kwargs.get("context_settings", {})}
        super().__init__(*args, **kwargs)
        self.params += global_options(hidden=True)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        """Say where the other options are, and the examples."""
        _write_examples(self.epilog, formatter)
        formatter.write_paragraph()
        formatter.write_text("Options of every command (--json, --plain, -q, -v, …): everstep --help")


def _write_examples(lines: str | None, formatter: click.HelpFormatter) -> None:
    if lines:
        with formatter.section("Examples"):
            for line in lines.strip().splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line.strip()}\n")


class Group(click.Group):
    """A command made of commands."""

    command_class = Verb

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- click's own arguments
        kwargs["context_settings"] = {**_HELP, **kwargs.get("context_settings", {})}
        super().__init__(*args, **kwargs)
        self.params += global_options(hidden=True)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        """Examples, line by line."""
        _write_examples(self.epilog, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each with the whole of its first sentence."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(SENTENCE_MAX)) for name, command in commands if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A command, or a refusal with the closest name."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise UnknownCommand(args[0], self.list_commands(ctx), ctx)
        return super().resolve_command(ctx, args)


def _loaded(module: str) -> ModuleType:
    """Its classes and functions stay to the end, so the collector need not look at them: not now, and not later."""
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()


class Doorway(Group):
    """The command itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- click's own arguments
        super().__init__(*args, **kwargs)
        self.params = [param for param in self.params if not getattr(param, "hidden", False)]
        self.params += global_options(hidden=False)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Every name, in the order of the table."""
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- as above
        """Load one command."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(_loaded(_ROOM + entry.module), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What it can do comes before how."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A hint, no example."""
        click.Command.format_epilog(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- as above
        """The list by purpose, without loading anything."""
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<10}", entry.line) for name, entry in entries.items()])
