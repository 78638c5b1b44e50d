"""Secrets at the tool boundary: the journal holds names, calls get values, and no writer ever sees one (S60)."""

import os
from base64 import b64encode
from pathlib import Path

import pytest

from everstep import Ctx, Engine, Plan, PlanError, Secret, ToolError, tool
from everstep.adapters.secrets import gather
from everstep.domain.errors import SettingsError
from everstep.testing import TestEngine

CANARIES = {
    "plain": "hunter2-correct-horse",
    "awkward": 'quo"te\\back/<&>ünï',
    "lines": "-----BEGIN KEY-----\nMIIBcanary\n-----END KEY-----",
}
SEEN: list[str] = []


@tool.pure("leak.echo")
async def echo(token: Secret, how: str = "return", *, ctx: Ctx) -> dict[str, str]:
    """Tell it to everybody."""
    value = token.reveal()
    SEEN.append(value)
    ctx.progress(0.5, f"using {value}")
    ctx.log.info("using", token=value, packed=b64encode(value.encode()).decode())
    for character in value:
        ctx.stream(character)
    if how == "fail":
        raise ToolError(f"denied for {value}", what_to_do=f"renew {value}", details={"header": f"Bearer {value}"})
    if how == "bug":
        raise KeyError(value)
    return {"said": value, "packed": b64encode(b"user:" + value.encode()).decode(), value: "as a key"}


def plan_of(secret: str, how: str) -> Plan:
    plan = Plan("leaking")
    plan.step("leak", "leak.echo", {"token": plan.expr(f"secrets.{secret}"), "how": how})
    return plan


def search(folder: Path) -> dict[str, list[str]]:
    return {file.name: hits(file.read_bytes()) for file in folder.rglob("*") if file.is_file()}


def hits(data: bytes) -> list[str]:
    found = [name for name, value in CANARIES.items() if value.encode() in data]
    found += [name for name, value in CANARIES.items() if b64encode(value.encode())[4:-4] in data]
    return found + [name for name, value in CANARIES.items() if value.encode().hex().encode() in data]


@pytest.mark.req("1.5", "8.4")
@pytest.mark.parametrize("how", ["return", "fail", "bug"])
async def test_no_file_holds_a_secret(tmp_path: Path, how: str) -> None:
    """S60, for a tool that shouts them: store, write-ahead log, artifacts, logs: searched byte by byte."""
    SEEN.clear()
    async with Engine(tmp_path / "s.db", tools=[echo], secrets=CANARIES) as engine:
        for name in CANARIES:
            task = await engine.start(plan_of(name, how))
            result = await task.result()
            assert result.status == ("completed" if how == "return" else "failed")
            shown = repr(result) + repr([event async for event in task.events(follow=False)])
            assert hits(shown.encode()) == []
            assert f"secret:{name}" in shown
        during = search(tmp_path)
    assert [*CANARIES.values()] == SEEN  # the calls did get them
    after = search(tmp_path)
    assert {name: found for name, found in (during | after).items() if found} == {}
    assert any("everstep.log" in name for name in after)


async def test_outputs_are_redacted_before_they_are_bound() -> None:
    plan = plan_of("plain", "return")
    plan.step("use", "text.join", {"texts": [plan.expr("leak.said"), "!"]})
    plan.output(text=plan.expr("use.text"))
    async with TestEngine([echo], secrets=CANARIES) as engine:
        result = await (await engine.start(plan)).result()
        assert result.outputs == {"text": "[secret:plain]\n!"}
        assert hits(repr(engine.sink.notes).encode()) == []


async def test_one_that_is_not_there() -> None:
    async with TestEngine([echo]) as engine:
        with pytest.raises(PlanError) as refused:
            await engine.start(plan_of("nowhere", "return"))
    assert [problem.code for problem in refused.value.problems] == ["plan.unknown_secret"]
    assert "EVERSTEP_SECRET_NOWHERE" in str(refused.value.what_to_do)


async def test_grants() -> None:
    config = {"secrets.grants": {"local": ["awkward"]}}
    async with TestEngine([echo], secrets=CANARIES, config=config) as engine:  # type: ignore[arg-type]
        assert (await (await engine.start(plan_of("awkward", "return"))).result()).status == "completed"
        with pytest.raises(PlanError):
            await engine.start(plan_of("plain", "return"))


async def test_one_that_is_gone_by_the_time_of_the_call() -> None:
    plan = Plan("leaking")
    gate = plan.step("gate", "ask", {"question": "go on?"})
    plan.step("leak", "leak.echo", {"token": plan.expr("secrets.plain"), "how": "return"}, needs=[gate])
    async with TestEngine([echo], secrets=CANARIES) as engine:
        task = await engine.start(plan)
        await task.result(on_pause="return")
        store, clock = engine.store, engine.clock
    async with TestEngine([echo], store=store, clock=clock) as engine:
        task = await engine.get(task.id)
        await engine.inbox.only().answer("yes")
        result = await task.result()
    assert result.error is not None
    assert (result.error["code"], result.error["category"]) == ("secret_missing", "configuration")
    assert "EVERSTEP_SECRET_PLAIN" in str(result.error["what_to_do"])


def test_where_they_come_from(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("from-the-folder\n")
    (tmp_path / "two").write_text("from-the-folder\n")
    for file in tmp_path.iterdir():
        file.chmod(0o600)
    env = {"EVERSTEP_SECRET_TWO": "from-the-environment", "EVERSTEP_SECRET_THREE": "from-the-environment"}
    assert gather({"three": "handed-in"}, env, tmp_path) == {
        "one": "from-the-folder",
        "two": "from-the-environment",
        "three": "handed-in",
    }
    (tmp_path / "one").chmod(0o644)
    with pytest.raises(SettingsError, match="others may read") as refused:
        gather({}, {}, tmp_path)
    assert refused.value.what_to_do == f"chmod 600 {tmp_path / 'one'}"
    with pytest.raises(SettingsError, match="no name"):
        gather({"Not Ok": "x" * 9}, {}, None)
    with pytest.raises(SettingsError, match=r"secrets\.dir"):
        gather({}, {}, tmp_path / "missing")
    assert os.environ.get("EVERSTEP_SECRET_TWO") is None
