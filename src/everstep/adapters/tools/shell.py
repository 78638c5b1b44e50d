"""`shell.run`: programs that the operator named, with arguments that match what the operator allows. Never a shell.

Lists of first words fail: a newline, `git -c`, `--exec` turn a harmless program into any other. So *every* argument
must match a pattern, and one that begins with a dash only a pattern that does too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from everstep.adapters.isolation.bounds import Walls, bounds_of, ran, refuse_broken
from everstep.adapters.isolation.child import Bounds, Child, Ended, Program
from everstep.adapters.paths import names_of
from everstep.adapters.tools.family import closed, spec_of
from everstep.domain.errors import SettingsError
from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Denied, Health, Impossible, Misconfigured, Probed, ToolError, ToolSpec
from everstep.ports.tool import Transient as Later
from everstep.settings import Settings

STDIN_BYTES_MAX: Final = 1 << 20
SHOWN_CHARS: Final = 500
NOT_ALLOWED: Final = 126


@record
class Command:
    """A program the operator has named."""

    program: str
    arguments: tuple[re.Pattern[str], ...] = ()
    effect: Effect = Effect.ONCE
    network: bool = False
    probe: tuple[str, ...] = ()
    transient_exit: frozenset[int] = frozenset({75})

    def takes(self, argument: str) -> bool:
        """Whether an argument may be given to it."""
        return any(
            pattern.fullmatch(argument)
            and (not argument.startswith("-") or pattern.pattern.lstrip("(?:").startswith("-"))
            for pattern in self.arguments
        )


class ShellTools(ToolAdapter):
    """The one tool; it is there only if a command is."""

    def __init__(self, commands: Mapping[str, Command], walls: Walls) -> None:
        self._commands = commands
        self._walls = walls

    def tools(self) -> Sequence[ToolSpec]:
        """None without commands."""
        return (_SPEC,) if self._commands else ()

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """A program nobody named, an argument it does not take, a folder outside."""
        problems = []
        argv = call.arguments.get("argv")
        name, *rest = argv if isinstance(argv, list) and argv else [None]
        command = self._commands.get(str(name))
        if command is None:
            known = ", ".join(sorted(self._commands))
            problems.append(("/argv/0", f"names no command; there are: {known}. More in [shell.commands]"))
        else:
            problems += [
                (f"/argv/{at}", f"'{word}' is no argument that '{name}' takes; see shell.commands.{name}.arguments")
                for at, word in enumerate(rest, 1)
                if "\0" in str(word) or not command.takes(str(word))
            ]
        try:
            names_of(str(call.arguments.get("cwd", ".")))
        except ToolError as error:
            problems.append(("/cwd", str(error)))
        return problems

    def effect_of(self, call: Call) -> Effect | None:
        """As the operator says of the command."""
        argv = call.arguments.get("argv")
        command = self._commands.get(str(argv[0])) if isinstance(argv, list) and argv else None
        return None if command is None else command.effect

    def target(self, call: Call) -> str:
        """The command."""
        argv = call.arguments.get("argv")
        return str(argv[0]) if isinstance(argv, list) and argv else call.tool

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Run it behind walls, and judge its end."""
        arguments: dict[str, Any] = call.arguments
        name, *rest = arguments["argv"]
        command = self._commands[name]
        cwd = ctx.workdir.joinpath(*map(bytes.decode, names_of(arguments.get("cwd", "."))))
        program = Program(
            argv=(command.program, *rest),
            cwd=str(cwd.resolve(strict=True)),
            env={**arguments.get("env", {})},
            stdin=arguments.get("stdin", "").encode(),
            bounds=bounds_of(ctx),
            network=command.network,
            uid=self._walls.uid,
            writes=(str(ctx.workdir.resolve()),),
            require=self._walls.needed(call.tool, trusted=ctx.origin.trusted),
        )
        ended = await ran(Child(program), ctx)
        refuse_broken(ended, call.tool)
        self._judge(command, ended, arguments.get("expect_exit", [0]))
        return _told(ended)

    async def probe(self, call: Call) -> Probed:
        """The operator's own check, read-only by promise: 0, it happened; 1, it did not."""
        argv = call.arguments.get("argv")
        command = self._commands.get(str(argv[0])) if isinstance(argv, list) and argv else None
        if command is None or not command.probe:
            return Probed(result="unknown")
        words = tuple(word.replace("{key}", call.idempotency_key) for word in command.probe)
        ended = await Child(Program(argv=words, cwd="/", bounds=Bounds(cpu_s=9), uid=self._walls.uid)).run()
        if ended.exit_code == 0:
            return Probed(result="done", output=_told(ended))
        return Probed(result="not_done" if ended.exit_code == 1 else "unknown")

    async def health(self) -> Health:
        """Whether the programs are there."""
        missing = [name for name, command in self._commands.items() if not _is_file(command.program)]
        if missing:
            return Health(status="unhealthy", detail=f"no program for {', '.join(missing)}")
        return Health(status="healthy")

    def _judge(self, command: Command, ended: Ended, expected: Sequence[int]) -> None:
        said = (
            bytes(ended.stderr.data[-SHOWN_CHARS:] or ended.stdout.data[-SHOWN_CHARS:]).decode(errors="replace").strip()
        )
        if ended.exit_code in expected:
            return
        if not ended.begun:
            if ended.exit_code == NOT_ALLOWED:
                raise Denied(f"{command.program} may not be run: {said}", code="shell_denied")
            raise Misconfigured(f"{command.program} could not be run: {said}", code="shell_missing")
        if ended.exit_code in command.transient_exit:
            raise Later(f"{command.program} asks to be called later: {said}", code="shell_tempfail")
        how = f"exit code {ended.exit_code}" if ended.signal is None else f"signal {ended.signal}"
        raise Impossible(
            f"{command.program} ended with {how}{': ' + said if said else ''}",
            code="shell_exit" if ended.signal is None else "shell_signal",
            effect_state="made",
            details={key: value for key, value in _told(ended).items() if key not in {"stdout", "stderr"}},
        )


def _told(ended: Ended) -> JsonObject:
    return {
        "exit_code": ended.exit_code,
        "signal": ended.signal,
        "stdout": bytes(ended.stdout.data).decode(errors="replace"),
        "stderr": bytes(ended.stderr.data).decode(errors="replace"),
        "stdout_bytes": ended.stdout.size_bytes,
        "stderr_bytes": ended.stderr.size_bytes,
        "truncated": len(ended.stdout.data) < ended.stdout.size_bytes
        or len(ended.stderr.data) < ended.stderr.size_bytes,
        "sha256": ended.stdout.digest.hexdigest(),
        "timed_out": False,
    }


def _is_file(path: str) -> bool:
    return Path(path).is_file()


def commands_of(settings: Settings) -> dict[str, Command]:
    """The operator's map; raises SettingsError."""
    commands = {}
    for name, table in settings.tables("shell.commands").items():
        program = str(table.get("program") or "")
        if not program.startswith("/"):
            raise SettingsError(f"'shell.commands.{name}.program' must be an absolute path", what_to_do="write it out")
        arguments, probe, later = (table.get(key) or () for key in ("arguments", "probe", "transient_exit"))
        assert isinstance(arguments, tuple)
        assert isinstance(probe, tuple)
        assert isinstance(later, tuple)
        try:
            patterns = tuple(re.compile(pattern) for pattern in arguments)
            exits = frozenset(map(int, later)) or frozenset({75})
        except (re.error, ValueError) as error:
            raise SettingsError(f"'shell.commands.{name}': {error}", what_to_do="correct it") from error
        commands[name] = Command(
            program=program,
            arguments=patterns,
            effect=Effect(str(table.get("effect") or Effect.ONCE)),
            network=bool(table.get("network")),
            probe=probe,
            transient_exit=exits,
        )
    return commands


_PLAIN: Final = spec_of(
    "shell.run",
    "Run a program",
    "Run a program that the configuration names, in a process of its own, without network unless it is granted.",
    takes={
        "argv": {
            "type": "array",
            "minItems": 1,
            "maxItems": 256,
            "prefixItems": [{"type": "string", "x-everstep-kind": "literal"}],
            "items": {"type": "string", "x-everstep-kind": "checked"},
            "description": "A name of [shell.commands], and its arguments",
        },
        "cwd": {"type": "string", "x-everstep-kind": "checked", "description": "A folder of the workspace"},
        "env": {
            "type": "object",
            "propertyNames": {
                "pattern": "^[A-Z][A-Z0-9_]{0,62}$",
                "not": {"pattern": "^(LD_|PATH$|PYTHON|BASH_|IFS$)"},
            },
            "additionalProperties": {"type": "string"},
            "description": "Variables, beside a short list of the usual ones",
        },
        "stdin": {"type": "string", "maxLength": STDIN_BYTES_MAX, "description": "What it reads"},
        "expect_exit": {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": 255},
            "description": "Exit codes that are a success; 0 unless said",
        },
    },
    needs=("argv",),
    gives=closed(
        {
            "exit_code": {"type": ["integer", "null"]},
            "signal": {"type": ["integer", "null"]},
            "stdout": {"type": "string"},
            "stderr": {"type": "string"},
            "stdout_bytes": {"type": "integer"},
            "stderr_bytes": {"type": "integer"},
            "truncated": {"type": "boolean"},
            "sha256": {"type": "string", "description": "Of all of the standard output"},
            "timed_out": {"type": "boolean"},
        }
    ),
    effect=Effect.ONCE,
    isolation="process",
    timeout_ms=Millis(180_000),
)
_SPEC: Final = replace(
    _PLAIN, pool="shell", permissions=("proc.exec",), probeable=True, step_timeout_ms=Millis(600_000)
)
