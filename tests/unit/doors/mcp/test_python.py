"""MCP from Python: the builder makes a plain plan, and the bridge's verbs are one transaction each."""

from pathlib import Path
from typing import Any

import pytest

from everstep import Engine, Plan
from everstep.domain.errors import EverstepError, SettingsError
from everstep.domain.ids import StepPath
from everstep.mcp import (
    PAUSE_REASON,
    McpServer,
    TaskBridge,
    Workflow,
    WorkflowStep,
    constant,
    field,
    from_step,
    prompt_arg,
)
from tests.unit.doors.mcp.stage import Work


def pipeline() -> Workflow:
    return (
        Workflow("data-pipeline", "fetch, transform and store records")
        .argument("source", "Where the records are", True)
        .step(
            WorkflowStep("fetch", "fetch_data")
            .arg("source", prompt_arg("source"))
            .bind("raw_data")
            .with_guidance("If {source} stays down, use the {mirror}.")
            .retryable(True)
        )
        .step(
            WorkflowStep("transform", "transform_data")
            .arg("data", from_step("raw_data"))
            .arg("format", constant("${not} a binding"))
            .bind("transformed")
        )
        .step(WorkflowStep("store", "store_data").arg("payload", field("transformed", "rows")))
    )


@pytest.mark.req("EXEC-03.a", "HAND-03.c", "INTG-02")
def test_the_builder_makes_a_plain_plan() -> None:
    written = Plan.from_dict(
        {
            "name": "data-pipeline",
            "description": "fetch, transform and store records",
            "inputs": {"source": {"type": "string", "description": "Where the records are"}},
            "steps": [
                {
                    "id": "fetch",
                    "bind": "raw_data",
                    "tool": "fetch_data",
                    "with": {"source": "${inputs.source}"},
                    "guidance": "If ${inputs.source} stays down, use the {mirror}.",
                    "retryable": True,
                },
                {
                    "id": "transform",
                    "bind": "transformed",
                    "tool": "transform_data",
                    "with": {"data": "${raw_data}", "format": "$${not} a binding"},
                },
                {"id": "store", "tool": "store_data", "with": {"payload": "${transformed.rows}"}},
            ],
        }
    )
    built = pipeline()
    assert built.plan().digest == written.digest
    assert not built.has_task_support()
    assert WorkflowStep("a", "b").is_retryable() is False
    assert field("b", "items.0.id").value == "${b.items[0].id}"
    with pytest.raises(EverstepError):
        WorkflowStep("a", "b").arg("x", "a text")  # type: ignore[arg-type]


async def test_steps_read_what_functions_give(tmp_path: Path) -> None:
    reading = (
        WorkflowStep.fetch_resources("guide")
        .with_resource("docs://guides/{topic}")
        .with_resource("docs://all")
        .with_template_binding("topic", prompt_arg("topic"))
    )
    workflow = Workflow("read", "read a guide").argument("topic", "Of what").step(reading)
    engine = Engine(tmp_path / "everstep.db")
    McpServer(engine).resource("docs://guides/{topic}", lambda topic: f"On {topic}").resource(
        "docs://all", lambda: {"n": 2}
    )
    async with engine:
        task = await engine.start(workflow.plan(), {"topic": "a/b"})
        await task.result()
        await task.refresh()
        read = task.steps[StepPath("guide")]
        assert read.output is not None
        value: Any = read.output.value
        assert [(one["uri"], one["text"]) for one in value["contents"]] == [
            ("docs://guides/a%2Fb", "On a/b"),
            ("docs://all", '{"n": 2}'),
        ]
        with pytest.raises(EverstepError, match="open already"):
            McpServer(engine).resource("docs://more", str)


@pytest.mark.req("INTG-01")
async def test_a_workflow_published_while_it_is_served_is_told(tmp_path: Path) -> None:
    async with Engine(tmp_path / "work.db") as engine:
        server = McpServer(engine)
        door = server.door()
        with door.desk.book.bells.listening() as ear:
            server.prompt_workflow(Workflow("later", "wait").step(WorkflowStep("a", "wait")))
            assert "prompts" in await ear.changed()
        assert door.prompts.offered()[0]["name"] == "later"


@pytest.mark.req("INTG-01")
def test_a_workflow_needs_an_engine() -> None:
    with pytest.raises(SettingsError, match="store"):
        McpServer(None).prompt_workflow(pipeline())


@pytest.mark.req("FNDX-04", "EXEC-02.d")
async def test_the_bridge_has_four_verbs(tmp_path: Path) -> None:
    work = Work()
    async with Engine(tmp_path / "work.db", tools=work.tools()) as engine:
        bridge = TaskBridge(engine)
        task = await bridge.create_workflow_task(pipeline(), {"source": "a"})
        async for event in engine.events(task):
            if event.type == "task.paused":
                break
        await bridge.set_task_variables(task, {"mine": 1})
        with pytest.raises(EverstepError):
            await bridge.set_task_variables(task, {PAUSE_REASON: None})
        assert await bridge.continue_workflow_task(task, "fetch_data", {"source": "mirror"}) == {"lines": ["a,1"]}
        with pytest.raises(EverstepError, match="do not fit"):
            await bridge.continue_workflow_task(task, "store_data", {})
        await bridge.complete_workflow_task(task, {"done": True})
        ended = await engine.get(task)
        assert (ended.status, ended.outcome, ended.outputs) == ("completed", "partial", {"done": True})
