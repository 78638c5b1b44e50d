"""`file.*` in folders beside the workspace: by name, as the operator allows, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest

from everstep import Plan, PlanError
from everstep.domain.errors import SettingsError
from everstep.domain.values import JsonObject, JsonValue
from everstep.testing import TestEngine


@pytest.fixture
def config(tmp_path: Path) -> JsonObject:
    for name in ("work", "docs", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "docs/a.txt").write_text("from the docs")
    (tmp_path / "secret.txt").write_text("no")
    (tmp_path / "docs/link").symlink_to(tmp_path / "secret.txt")
    roots: JsonObject = {"docs": {"path": str(tmp_path / "docs")}, "out": {"path": str(tmp_path / "out"), "mode": "rw"}}
    return {"workspace": str(tmp_path / "work"), "file.roots": roots}


async def ran(engine: TestEngine, tool: str, **arguments: JsonValue) -> Any:
    plan = Plan("files")
    said = {name.rstrip("_"): value for name, value in arguments.items()}
    plan.step("call", f"file.{tool}", said, retry=0)
    plan.output(value=plan.expr("call"))
    result = await (await engine.start(plan)).result()
    return (result.outputs or {})["value"] if result.status == "completed" else (result.error or {})["code"]


async def test_what_is_read_changed_and_copied(tmp_path: Path, config: JsonObject) -> None:
    async with TestEngine(config=config) as engine:
        read = await ran(engine, "read", path="docs:a.txt")
        assert (read["path"], read["text"]) == ("docs:a.txt", "from the docs")
        listed = await ran(engine, "list", path="docs:.", glob="*.txt")
        assert [one["path"] for one in listed["entries"]] == ["docs:a.txt"]
        assert (await ran(engine, "copy", from_="docs:a.txt", to="mine.txt"))["path"] == "mine.txt"
        assert (tmp_path / "work/mine.txt").read_text() == "from the docs"
        assert (await ran(engine, "copy", from_="mine.txt", to="out:b/mine.txt"))["path"] == "out:b/mine.txt"
        assert (tmp_path / "out/b/mine.txt").read_text() == "from the docs"
        ops: list[JsonValue] = [{"op": "write", "path": "out:c.txt", "text": "c"}]
        assert await ran(engine, "apply", ops=ops) == {"changed": ["out:c.txt"]}
        assert await ran(engine, "write", path="docs:new.txt", text="x") == "policy_denied"
        assert await ran(engine, "move", from_="docs:a.txt", to="docs:b.txt") == "policy_denied"
        assert await ran(engine, "move", from_="out:c.txt", to="c.txt") == "bad_argument"
        assert await ran(engine, "read", path="docs:link") in ("policy_denied", "os_denied", "os_eloop")
    assert sorted(one.name for one in (tmp_path / "docs").iterdir()) == ["a.txt", "link"]


@pytest.mark.parametrize(
    "path", ["docs:../secret.txt", "docs:/etc/passwd", "docs:out:c", "other:a", "docs:.everstep/x"]
)
async def test_paths_that_lead_elsewhere(config: JsonObject, path: str) -> None:
    async with TestEngine(config=config) as engine:
        with pytest.raises(PlanError):
            await ran(engine, "read", path=path)


@pytest.mark.req("File.2")
async def test_changes_there_are_taken_back(tmp_path: Path, config: JsonObject) -> None:
    async with TestEngine(config=config) as engine:
        plan = Plan("files")
        plan.step("call", "file.write", {"path": "out:d/e.txt", "text": "x"})
        task = await engine.start(plan)
        await task.result()
        assert (tmp_path / "out/d/e.txt").read_text() == "x"
        undone = await task.undo()
        assert (await undone.result()).status == "completed"
    assert [*(tmp_path / "out").iterdir()] == []


async def test_a_root_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"'file\.roots\.docs' names no folder"):
        async with TestEngine(config={"file.roots": {"docs": {"path": str(tmp_path / "nowhere")}}}):
            pass
