"""`shell.run`: programs of the operator's map, arguments that match, ends that are judged (S54)."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from everstep import Plan
from everstep.domain.errors import SettingsError
from everstep.domain.values import JsonObject, JsonValue
from everstep.settings import load_settings
from everstep.testing import TestEngine
from tests.unit.contexts import call_of

COMMANDS: JsonObject = {
    "shell.commands": {
        "sh": {"program": "/bin/sh", "arguments": ["-c", "(?s).*"], "effect": "pure"},
        "git": {"program": "/usr/bin/git", "arguments": ["status|log|diff", "--oneline", "-n[0-9]{1,3}", "[a-z/]+"]},
        "missing": {"program": "/no/such/program"},
        "denied": {"program": "/etc/passwd"},
        "later": {"program": "/bin/sh", "arguments": ["-c", "exit [0-9]+"], "transient_exit": ["9"]},
    },
    "containment.require": {"shell.run": "limited"},
}


@pytest.fixture
def place() -> Iterator[Path]:
    folder = Path(mkdtemp(prefix="everstep-shell-", dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def plan_of(*argv: str, **more: JsonValue) -> Plan:
    plan = Plan("running")
    limits = more.pop("limits", None)
    plan.step("run", "shell.run", {"argv": [*argv], **more}, **({"limits": limits} if limits else {}), retry=0)
    return plan


async def test_a_program_runs_in_the_workspace(place: Path) -> None:
    async with TestEngine(config=COMMANDS, workspace=place) as engine:
        task = await engine.start(
            plan_of("sh", "-c", "cat; echo done > out; echo $GREETING", stdin="in\n", env={"GREETING": "hi"})
        )
        result = await task.result()
        assert result.status == "completed", result.error
        (done,) = [event.data async for event in task.events(follow=False) if event.type == "step.completed"]
    assert (place / "out").read_text() == "done\n"
    usage: Any = done["usage"]
    assert usage["cpu_s"] is not None
    assert usage["containment"]["seccomp"] is True


@pytest.mark.req("6.5", "7.1", "R.1", "E.4")
async def test_one_that_takes_too_much_is_ended_and_its_siblings_go_on(place: Path) -> None:
    hungry = plan_of(
        "sh", "-c", "x=aaaaaaaaaaaaaaaa; y=$x$x$x$x; while true; do z=$z$y; done", limits={"cpu_time": "500ms"}
    )
    async with TestEngine(config=COMMANDS, workspace=place) as engine:
        siblings = [await engine.start(plan_of("sh", "-c", "sleep 0.2; echo fine")) for _ in range(2)]
        bad = await (await engine.start(hungry)).result()
        assert [(await one.result()).status for one in siblings] == ["completed"] * 2
    assert bad.error is not None
    assert (bad.error["code"], bad.error["category"]) == ("limit_cpu", "resource")
    details = bad.error["details"]
    assert isinstance(details, dict)
    assert details["max"] == 0.5
    assert 0.5 < float(str(details["used"])) < 1.5


@pytest.mark.req("6.2", "E.2")
@pytest.mark.parametrize(
    ("argv", "code", "category"),
    [
        (("sh", "-c", "exit 3"), "shell_exit", "logic"),
        (("sh", "-c", "kill -9 $$"), "shell_signal", "logic"),
        (("missing",), "shell_missing", "configuration"),
        (("later", "-c", "exit 9"), "shell_tempfail", "transient"),
        (("denied",), "shell_denied", "permission"),
        # Something was done before: that a line of it names no program does not mean that nothing was.
        (("sh", "-c", "echo done > out; no-such-program"), "shell_exit", "logic"),
        (("sh", "-c", "echo done > out; exit 126"), "shell_exit", "logic"),
    ],
)
async def test_ends(place: Path, argv: tuple[str, ...], code: str, category: str) -> None:
    async with TestEngine(config=COMMANDS, workspace=place) as engine:
        task = await engine.start(plan_of(*argv))
        result = await task.result()
        (failed,) = [event.data async for event in task.events(follow=False) if event.type == "attempt.failed"]
    assert result.error is not None
    assert (result.error["code"], result.error["category"]) == (code, category)
    assert failed["effect_state"] == ("made" if category == "logic" else "none")


@pytest.mark.parametrize(
    "argv",
    [
        ["rm", "-rf", "x"],
        ["/bin/sh"],
        ["git", "status", "-c", "core.pager=sh"],
        ["git", "--exec-path=/tmp", "status"],
        ["git", "log", "--output=/etc/passwd"],
        ["git", "status\nrm"],
        ["git", "status; rm"],
        ["git", "-n1000"],
        ["git", "$(id)"],
        ["git", "`id`"],
        ["git", ""],
        ["git", "../x"],
        ["git", "a\0b"],
        ["git", "--oneline "],
        ["missing", "x"],
    ],
)
def test_arguments_that_are_not_allowed(argv: list[JsonValue]) -> None:
    from everstep.adapters.isolation.bounds import Walls
    from everstep.adapters.tools.shell import ShellTools, commands_of

    tools = ShellTools(commands_of(load_settings(COMMANDS, env={})), Walls())
    assert tools.validate(call_of("shell.run", {"argv": argv}))
    assert not tools.validate(call_of("shell.run", {"argv": ["git", "log", "--oneline", "-n20", "src/x"]}))


async def test_without_commands_there_is_no_such_tool() -> None:
    from everstep import PlanError

    async with TestEngine() as engine:
        with pytest.raises(PlanError) as refused:
            await engine.start(plan_of("sh"))
    assert [problem.message for problem in refused.value.problems] == ["no tool 'shell.run'"]
    with pytest.raises(SettingsError, match="absolute path"):
        async with TestEngine(config={"shell.commands.x.program": "sh"}):
            pass


async def test_a_limit_of_memory_needs_a_process() -> None:
    from everstep import PlanError

    plan = Plan("joining")
    plan.step("joined", "text.join", {"texts": []}, limits={"memory": "1MB"})
    async with TestEngine() as engine:
        with pytest.raises(PlanError) as refused:
            await engine.start(plan)
    assert {problem.code for problem in refused.value.problems} == {"plan.key_conflict"}
