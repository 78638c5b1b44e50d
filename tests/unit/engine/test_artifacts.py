"""Bytes that calls leave beside their output: kept by content with the end of the attempt, and gone with the task."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from everstep import Artifact, Ctx, Engine, Impossible, Plan, PlanError, Task, tool
from everstep.adapters.stores.sqlite.store import SqliteStore
from everstep.domain.ids import Instant
from everstep.domain.values import JsonObject
from everstep.testing import TestEngine
from everstep.testing.rig import HttpRig, answer
from tests.unit.doors.api.window import EVE, Window, codes

PNG = b"\x89PNG\r\n\x1a\n\x00\xff"
FREE: JsonObject = {"containment.uid_base": 0}


@tool.pure("leave.inline")
async def inline(*, ctx: Ctx) -> Artifact:
    """Leave a picture."""
    return ctx.artifact("page.png", PNG)


@tool.pure("leave.thread")
def thread(*, ctx: Ctx) -> Artifact:
    """Leave the same, from a file."""
    (ctx.workdir / "page.png").write_bytes(PNG)
    return ctx.artifact("again.png", "page.png")


@tool.pure("leave.process", isolate="process")
def process(*, ctx: Ctx) -> Artifact:
    """Leave the same, from another process."""
    return ctx.artifact("apart", PNG, "image/png")


@tool.pure("leave.failing")
async def failing(*, ctx: Ctx) -> None:
    """Leave a picture of the trouble."""
    ctx.artifact("trouble.png", PNG)
    raise Impossible("the button is not there")


@tool.pure("leave.wrong")
async def wrong(how: str, *, ctx: Ctx) -> None:
    """Leave what cannot be kept."""
    kinds: dict[str, Callable[[], Artifact]] = {
        "name": lambda: ctx.artifact("../x", b""),
        "size": lambda: ctx.artifact("x", b"x" * (17 << 20)),
        "many": lambda: max((ctx.artifact(f"{n}", b"") for n in range(101)), key=id),
        "file": lambda: ctx.artifact("x", Path("nowhere")),
    }
    kinds[how]()


def plan_of(name: str, **arguments: str) -> Plan:
    plan = Plan("leave")
    plan.step("call", name, arguments, retry=0)
    plan.output(value=plan.expr("call"))
    return plan


async def test_what_a_step_left_is_given_to_a_later_one(tmp_path: Path) -> None:
    """By its handle: written to a file, added to another, sent over HTTP; in a child of its task too."""
    config: JsonObject = {**FREE, "workspace": str(tmp_path)}
    async with HttpRig() as rig:
        rig.on("/shot", answer(201, {}))
        config["http.targets"] = {"rig": {"url": rig.url("/")}}
        steps = [{"id": "keep", "tool": "file.write", "with": {"path": "child.png", "artifact": "${inputs.picture}"}}]
        child = {"name": "child", "inputs": {"picture": {"type": "object"}}, "steps": steps}
        plan = Plan("pass-on")
        plan.step("shot", "leave.inline")
        handle = plan.expr("shot")
        plan.step("keep", "file.write", {"path": "kept.png", "artifact": handle})
        plan.step("add", "file.append", {"path": "kept.png", "artifact": handle})
        plan.step("send", "http.put", {"url": rig.url("/shot"), "artifact": handle})
        plan.step("below", "plan.run", {"plan": child, "inputs": {"picture": handle}})
        async with TestEngine([inline], config=config, workspace=tmp_path) as engine:
            result = await (await engine.start(plan)).result()
        assert result.status == "completed", result.error
        assert [(one.body, one.headers["content-type"]) for one in rig.asked] == [(PNG, "image/png")]
    assert (tmp_path / "kept.png").read_bytes() == PNG + PNG
    assert (tmp_path / "child.png").read_bytes() == PNG


async def test_whoever_only_knows_a_digest_gets_nothing(tmp_path: Path) -> None:
    """Another task has left it, of the same owner even: its digest is no key."""
    async with TestEngine([inline], workspace=tmp_path) as engine:
        left = await (await engine.start(plan_of("leave.inline"))).result()
        assert left.outputs is not None
        plan = Plan("thief")
        plan.step("take", "file.write", {"path": "stolen.png", "artifact": left.outputs["value"]}, retry=0)
        result = await (await engine.start(plan)).result()
        assert result.error is not None
        assert result.error["code"] == "artifact_unknown"
        both = Plan("both")
        both.step("take", "file.write", {"path": "x", "text": "x", "artifact": left.outputs["value"]})
        with pytest.raises(PlanError, match="goes not together with 'text'"):
            await engine.start(both)
        neither = Plan("neither")
        neither.step("take", "file.write", {"path": "x"})
        with pytest.raises(PlanError, match="text"):
            await engine.start(neither)
    assert not (tmp_path / "stolen.png").exists()


async def added(task: Task) -> list[dict[str, Any]]:
    return [dict(event.data) async for event in task.events(follow=False) if event.type == "artifact.added"]


@pytest.mark.req("R.6")
async def test_equal_bytes_are_kept_once_and_only_while_a_task_names_them(tmp_path: Path) -> None:
    config: JsonObject = {**FREE, "artifacts": str(tmp_path / "kept"), "workspace": str(tmp_path)}
    digest = f"sha256:{sha256(PNG).hexdigest()}"
    tools = [inline, thread, process, failing]
    async with Engine(tmp_path / "s.db", tools=tools, config=config) as engine:
        tasks = [await engine.start(plan_of(f"leave.{how}")) for how in ("inline", "thread", "process")]
        for task, name in zip(tasks, ("page.png", "again.png", "apart"), strict=True):
            result = await task.result()
            handle = {"name": name, "digest": digest, "media_type": "image/png", "bytes": len(PNG)}
            assert (result.status, result.outputs) == ("completed", {"value": handle}), result.error
            assert await added(task) == [{"attempt": 1, **handle}]
        assert [one.name for one in (tmp_path / "kept").glob("??/*")] == [digest.removeprefix("sha256:")]
        trouble = await engine.start(plan_of("leave.failing"))
        assert (await trouble.result()).status == "failed"
        (left,) = await added(trouble)
        assert (left["name"], left["digest"]) == ("trouble.png", digest)
        window = Window(cast("TestEngine", engine))
        (kept,) = (await window.good("GET", f"/v1/tasks/{trouble.id}/artifacts"))["items"]
        assert (kept["name"], kept["step"]) == ("trouble.png", "call")
        await seen(window, tasks[0].id, digest)
    async with Engine(tmp_path / "s.db", tools=tools, config=config) as engine:
        window, later = Window(cast("TestEngine", engine)), Instant(1 << 45)
        assert engine._parts is not None
        store = cast("SqliteStore", engine._parts.runtime.kit.store)
        assert await store.check() == []
        await seen(window, tasks[0].id, digest)
        for task in (*tasks[1:], trouble):
            assert (await window.api.handle(window.request("DELETE", f"/v1/tasks/{task.id}"))).status == 204
        assert await store.housekeeping.collect(later) == 0
        await seen(window, tasks[0].id, digest)
        assert (await window.api.handle(window.request("DELETE", f"/v1/tasks/{tasks[0].id}"))).status == 204
        assert await store.housekeeping.collect(later) == 1
        assert not [*(tmp_path / "kept").glob("??/*")]


async def seen(window: Window, task: str, digest: str) -> None:
    """It can be listed and downloaded by its owner, and by nobody else."""
    (one,) = (await window.good("GET", f"/v1/tasks/{task}/artifacts"))["items"]
    assert (one["name"], one["step"], one["media_type"]) == ("page.png", "call", "image/png")
    path = f"/v1/tasks/{task}/artifacts/{digest}"
    assert (await window.api.handle(window.request("GET", path))).body == PNG
    assert codes(await window.refused("GET", path, who=EVE)) == (404, "not_found")


@pytest.mark.parametrize(
    ("how", "code"),
    [("name", "tool_misconfigured"), ("size", "tool_misconfigured"), ("many", "limit_output"), ("file", "os_missing")],
)
async def test_what_cannot_be_kept_is_refused(how: str, code: str) -> None:
    async with TestEngine([wrong]) as engine:
        result = await (task := await engine.start(plan_of("leave.wrong", how=how))).result()
        assert result.status == "failed"
        assert result.error is not None
        assert result.error["code"] == code, result.error
        assert how == "many" or await added(task) == []


async def test_a_secret_in_it_is_hidden() -> None:
    @tool.pure("leave.secret")
    async def secret(*, ctx: Ctx) -> Artifact:
        """Leave what must not be seen."""
        return ctx.artifact("x", b"\xffkey=hunter2-correct\x00")

    async with TestEngine([secret], secrets={"mine": "hunter2-correct"}) as engine:
        await (task := await engine.start(plan_of("leave.secret"))).result()
        (left,) = await added(task)
        assert await engine.store.read_payload(left["digest"]) == b"\xffkey=[secret:mine]\x00"
