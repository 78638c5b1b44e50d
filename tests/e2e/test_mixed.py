"""End to end: a server process, the client that comes with it, ten steps of mixed tools."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bench.concurrency import at_once, measure
from everstep.client import Client
from tests.e2e.commands import Project
from tests.e2e.test_serve import Server

PLAN = """\
name: mixed
inputs: {topic: string}
steps:
  - {id: note, tool: file.write, with: {path: in/a.txt, text: "One ${inputs.topic}. Two. Three."}}
  - {id: back, tool: file.read, with: {path: in/a.txt}}
  - {id: parts, tool: text.split, with: {text: "${back.text}", separator: ". "}}
  - {id: joined, tool: text.join, with: {texts: "${parts.parts}", separator: "-"}}
  - {id: parsed, tool: json.parse, with: {text: '{"n": [1, 2, 3]}'}}
  - {id: nap, tool: wait, with: {for: 10ms}}
  - {id: each, for_each: "${parsed.value.n}", tool: my.double, with: {n: "${item}"}}
  - {id: hash, tool: text.hash, with: {text: "${joined.text}"}}
  - {id: sure, tool: ask, with: {question: "Keep ${hash.hash}?", schema: boolean}}
  - {id: kept, tool: file.write, when: "${sure}", with: {path: out.txt, text: "${joined.text}"}}
outputs: {doubled: "${each}", text: "${joined.text}"}
"""
TOOLS = """
from everstep import tool


@tool.pure("my.double")
def double(n: int) -> int:
    'Twice as much.'
    return 2 * n
"""


@pytest.fixture
def project() -> Iterator[Project]:
    with TemporaryDirectory(prefix="es-") as folder:
        yield Project(Path(folder))


@pytest.mark.req("TI.1", "US.1")
async def test_ten_steps_of_mixed_tools(project: Project) -> None:
    project.write("plans/mixed.plan.yaml", PLAN)
    project.write("mine.py", TOOLS)
    project.write("everstep.toml", 'tools = ["mine"]\n')
    server = await asyncio.to_thread(Server, project)
    try:
        async with asyncio.timeout(60), Client(server.ready["url"], token=server.token) as client:
            task = await client.create(plan_name="mixed", inputs={"topic": "tea"})
            seen: list[dict[str, object]] = []
            async for event in client.events(task["id"], until_end=True):
                seen.append(event)
                if event["type"] == "pause.opened":
                    await client.answer(event["data"]["id"], "answer", value=True)
            ended = await client.get(task["id"])
        assert ended["status"] == "completed", ended["error"]
        assert ended["outputs"] == {"doubled": [2, 4, 6], "text": "One tea-Two-Three."}
        assert (project.path / "out.txt").read_text() == "One tea-Two-Three."
        assert [event["seq"] for event in seen] == list(range(1, len(seen) + 1))
        assert ended["progress"]["done"] == ended["progress"]["total"] == 10
    finally:
        await asyncio.to_thread(server.stop)


@pytest.mark.req("TP.1", "7.3")
@pytest.mark.parametrize("places", [3, 20])
async def test_no_more_tasks_are_under_way_than_there_are_places(tmp_path: Path, places: int) -> None:
    """Fifty tasks of ten steps; how fast is for the bench."""
    spans = await measure(tmp_path, places)
    assert [len(calls) for calls in spans.values()] == [10] * 50
    assert at_once(spans) <= places
