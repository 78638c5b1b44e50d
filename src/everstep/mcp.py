"""MCP from Python: write a workflow, publish it, serve it.

server = McpServer(engine)
server.prompt_workflow(
    Workflow("data-pipeline", "move records")
    .argument("source", "Where the records are")
    .step(WorkflowStep("fetch", "fetch_data").arg("source", prompt_arg("source")).bind("raw").retryable(True))
    .with_task_support(True)
)
await server.serve_stdio()
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Self

from everstep.authoring.plan import Plan
from everstep.domain.continued import CLIENT, SERVER
from everstep.domain.errors import SettingsError, Validation
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.handoff import EXTRA, PAUSE_REASON, PROGRESS, RESULT, PlanProgress, StepProgress, read_progress

if TYPE_CHECKING:
    from everstep.doors.mcp.door import McpDoor
    from everstep.doors.mcp.published import Published
    from everstep.facade.engine import Engine

__all__ = [
    "EXTRA",
    "PAUSE_REASON",
    "PROGRESS",
    "RESULT",
    "McpServer",
    "PlanProgress",
    "Source",
    "StepProgress",
    "TaskBridge",
    "Workflow",
    "WorkflowStep",
    "constant",
    "field",
    "from_step",
    "prompt_arg",
    "read_progress",
]


@dataclass(frozen=True)
class Source:
    """Where an argument comes from, in the language of plans."""

    value: JsonValue


def prompt_arg(name: str) -> Source:
    """An argument of the prompt."""
    return Source(value=f"${{inputs.{name}}}")


def from_step(bind: str) -> Source:
    """The whole output of a step."""
    return Source(value=f"${{{bind}}}")


def field(bind: str, path: str) -> Source:
    """A field of a step's output: `items.0.id`."""
    inside = "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in path.split("."))
    return Source(value=f"${{{bind}{inside}}}")


def constant(value: JsonValue) -> Source:
    """A value as it is; nothing in it is a binding."""
    return Source(value=_literal(value))


class WorkflowStep:
    """One tool call of a workflow; without a tool it only reads resources."""

    def __init__(self, name: str, tool: str | None) -> None:
        self._keys: JsonObject = {"id": name} if tool is None else {"id": name, "tool": tool}
        self._with: JsonObject = {}
        self._uris: list[str] = []
        self._vars: JsonObject = {}

    @classmethod
    def fetch_resources(cls, name: str) -> Self:
        """A step that calls nothing."""
        return cls(name, None)

    def with_resource(self, uri: str) -> Self:
        """A resource it reads; `{var}` in it needs a binding."""
        self._uris.append(uri)
        return self

    def with_template_binding(self, var: str, source: Source) -> Self:
        """What `{var}` stands for in its resources."""
        self._vars[var] = source.value
        return self

    def arg(self, name: str, source: Source) -> Self:
        """Give it an argument."""
        if not isinstance(source, Source):
            raise Validation(f"'{name}' needs prompt_arg(…), from_step(…), field(…) or constant(…)")
        self._with[name] = source.value
        return self

    def bind(self, name: str) -> Self:
        """What its output is called."""
        self._keys["bind"] = name
        return self

    def with_guidance(self, text: str) -> Self:
        """Words for whoever takes over; `{arg}` is an argument of the prompt."""
        self._keys["guidance"] = text
        return self

    def retryable(self, value: bool) -> Self:  # noqa: FBT001 -- as it is called elsewhere
        """A hint for whoever takes over."""
        self._keys["retryable"] = value
        return self

    def is_retryable(self) -> bool:
        """What was said."""
        return bool(self._keys.get("retryable"))

    def keys(self, arguments: Mapping[str, object]) -> JsonObject:
        """The step of the plan."""
        keys = {**self._keys, **({"with": self._with} if "tool" in self._keys else {})}
        if self._uris:
            keys["resources"] = [self._resource(uri) for uri in self._uris]
        text = keys.get("guidance")
        if isinstance(text, str):
            keys["guidance"] = _guidance(text, arguments)
        return keys

    def _resource(self, uri: str) -> JsonValue:
        used = {name: value for name, value in self._vars.items() if f"{{{name}}}" in uri}
        return {"uri": uri, "vars": used} if used else uri


class Workflow:
    """A plan, written as MCP servers write them."""

    def __init__(self, name: str, description: str) -> None:
        self._name = name
        self._description = description
        self._inputs: JsonObject = {}
        self._steps: list[WorkflowStep] = []
        self._tasks = False
        self.mode = CLIENT

    def argument(self, name: str, description: str, required: bool = True) -> Self:  # noqa: FBT001, FBT002 -- as it is called elsewhere
        """An argument of the prompt."""
        return self.typed_argument(name, description, required, "string")

    def typed_argument(self, name: str, description: str, required: bool, type: str) -> Self:  # noqa: FBT001 -- as it is called elsewhere
        """An argument that is parsed by its type."""
        schema: JsonObject = {"type": type, "description": description}
        self._inputs[name] = schema if required else {**schema, "default": None}
        return self

    def step(self, step: WorkflowStep) -> Self:
        """One more step."""
        self._steps.append(step)
        return self

    def with_task_support(self, value: bool) -> Self:  # noqa: FBT001 -- as it is called elsewhere
        """Whether the prompt makes a task that can be handed over."""
        self._tasks = value
        return self

    def has_task_support(self) -> bool:
        """What was said; false by default."""
        return self._tasks

    def continue_by(self, mode: str) -> Self:
        """Who goes on after a call of the client's: `client` or `server`."""
        if mode not in (CLIENT, SERVER):
            raise Validation(f"'{mode}' is neither {CLIENT} nor {SERVER}")
        self.mode = mode
        return self

    def plan(self) -> Plan:
        """The plan it stands for."""
        steps: list[JsonValue] = [step.keys(self._inputs) for step in self._steps]
        said: JsonObject = {"name": self._name, "description": self._description, "steps": steps}
        return Plan.from_dict({**said, "inputs": self._inputs} if self._inputs else said)


class McpServer:
    """An engine, and the workflows it publishes."""

    def __init__(self, engine: "Engine | None") -> None:
        self._engine = engine
        self._workflows: list[Workflow] = []
        self._door: McpDoor | None = None

    def prompt_workflow(self, workflow: Workflow) -> Self:
        """Publish a workflow as a prompt, also while it is served; raises SettingsError without an engine."""
        if self._engine is None:
            raise SettingsError("a workflow needs an engine with a store", what_to_do="McpServer(Engine('work.db'))")
        self._workflows.append(workflow)
        if self._door is not None:
            self._door.desk.book.publish(_published(workflow))
        return self

    def resource(self, uri_template: str, function: Callable[..., Any]) -> Self:
        """What stands at `docs://guides/{topic}`: the function is given the variables, and returns text."""
        if self._engine is None:
            raise SettingsError("a resource needs an engine", what_to_do="McpServer(Engine('work.db'))")
        self._engine.resource(uri_template, function)
        return self

    def door(self) -> "McpDoor":
        """What serves it; the engine is open."""
        from everstep.doors.mcp.opening import engine_door

        assert self._engine is not None
        self._door = engine_door(self._engine, map(_published, self._workflows))
        return self._door

    async def serve_stdio(self) -> None:
        """Speak MCP on stdin and stdout until the client closes its end."""
        import os
        import sys

        from everstep.doors.mcp.server import serve_stdio

        assert self._engine is not None
        wire = os.dup(1)
        os.dup2(2, 1)
        async with self._engine:
            door = self.door()
            await door.check()
            with os.fdopen(wire, "wb", closefd=False) as out:
                await serve_stdio(door, version("everstep"), sys.stdin.buffer, out)


def _published(workflow: Workflow) -> "Published":
    from everstep.doors.mcp.published import Published

    plan = workflow.plan().spec
    return Published(plan=plan, task_support=workflow.has_task_support(), continue_by=workflow.mode)


class TaskBridge:
    """The four verbs between a workflow and its task; each is one transaction."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    async def create_workflow_task(self, workflow: Workflow, inputs: JsonObject) -> str:
        """A task that can be handed over, durable on return; its id."""
        from everstep.facade.accept import Wish

        plan = workflow.plan()
        wish = Wish(plan=plan.spec, digest=plan.digest, inputs=inputs, trusted=True, continue_by=workflow.mode)
        return (await self._engine.desk.submit(wish, self._engine.who)).id

    async def set_task_variables(self, task: str, variables: JsonObject) -> None:
        """Keep values with it; null deletes, `_workflow.` is refused."""
        state = await self._engine.desk.get(task, self._engine.who)
        most = int(str(self._engine.settings.said["mcp.variables"].value))
        await self._handing.set_variables(state.id, self._engine.who, variables, bytes_max=most)

    async def continue_workflow_task(self, task: str, tool: str, arguments: JsonObject) -> JsonValue:
        """Make one call for it; the tool's result. Raises what went wrong."""
        from everstep.domain.continued import ClientCall
        from everstep.domain.errors import EverstepError

        state = await self._engine.desk.get(task, self._engine.who)
        call = ClientCall(tool=tool, arguments=arguments)
        said = (await self._handing.call(state.id, self._engine.who, call)).said
        if said.failure is not None:
            raise EverstepError(said.failure.message, code=said.failure.code)
        return None if said.output is None else await self._engine.desk.value(said.output)

    async def complete_workflow_task(self, task: str, result: JsonValue) -> None:
        """It is done, with this result."""
        from everstep.domain.continued import Done

        state = await self._engine.desk.get(task, self._engine.who)
        await self._handing.complete(state.id, self._engine.who, Done(result=result))

    @property
    def _handing(self) -> Any:  # noqa: ANN401 -- imported when it is used
        from everstep.facade.handing import Handing

        return Handing(self._engine.desk)


def _guidance(text: str, arguments: Mapping[str, object]) -> str:
    for name in arguments:
        text = text.replace(f"{{{name}}}", f"${{inputs.{name}}}")
    return text


def _literal(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_literal(one) for one in value]
    return {name: _literal(one) for name, one in value.items()} if isinstance(value, dict) else value
