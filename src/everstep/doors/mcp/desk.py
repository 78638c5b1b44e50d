"""What prompts, calls and tasks of this door share: the engine, what is on offer, and how a client sees a task."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from everstep.domain.errors import EverstepError, PlanError
from everstep.domain.record import record
from everstep.domain.task import TaskState
from everstep.doors.mcp.bridge import EXTENSION, MODERN, View, expired
from everstep.doors.mcp.channel import Caller, Channel, Json, ask
from everstep.doors.mcp.published import Book, Published
from everstep.doors.mcp.refusals import INVALID_PARAMS, MISSING_CAPABILITY, Refused, broken, no_such_task
from everstep.doors.mcp.story import Story, read_story


@record
class DoorLimits:
    """The settings of `[mcp]`."""

    ttl_ms: int = 3_600_000
    max_ttl_ms: int = 86_400_000
    prompt_wait_s: float = 50.0
    task_after_s: float = 2.0
    wait_s: float = 20.0
    page: int = 50
    variables_bytes: int = 1024 * 1024
    input_responses: int = 64
    on_task_unavailable: str = "error"
    trust_elicitation: str = "stdio"
    calls_per_owner: int = 16
    streams_per_owner: int = 32
    sessions_per_owner: int = 32


@record
class Client:
    """Who is at the door, and what it can do."""

    caller: Caller
    era: str = MODERN
    elicits: bool = False
    tasks: bool = False
    """Whether it declares the Tasks extension (2026-07-28)."""
    stdio: bool = True
    scopes: frozenset[str] | None = None
    """What its token allows; None: everything."""

    def may(self, scope: str) -> None:
        """Raises Refused where its token does not allow it."""
        if self.scopes is not None and scope not in self.scopes:
            raise Refused(INVALID_PARAMS, f"The token lacks the scope '{scope}'", {"code": "forbidden"})

    def need_tasks(self) -> None:
        """The Tasks extension is declared with every request, or what needs it is refused."""
        if not self.legacy and not self.tasks:
            data: Json = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
            raise Refused(MISSING_CAPABILITY, "The Tasks extension is not declared", data)

    @property
    def legacy(self) -> bool:
        """Whether it speaks a revision with a handshake."""
        return self.era != MODERN


class DoorDesk:
    """One door's hold on the engine."""

    def __init__(self, channel: Channel, book: Book, limits: DoorLimits, now_ms: Callable[[], int]) -> None:
        self.channel = channel
        self.book = book
        self.limits = limits
        self._now_ms = now_ms

    async def known_tools(self, caller: Caller) -> list[Json]:
        """What the engine can call just now."""
        return list((await ask(self.channel, caller, "GET /v1/tools"))["items"])

    async def check_plans(self, caller: Caller) -> None:
        """Every published plan is sound here; raises PlanError."""
        for name, one in self.book.workflows.items():
            if not one.plan.steps:
                raise PlanError(f"the published plan '{name}' has no steps")
            body: Json = {"plan": one.source, "trusted": True}
            said = await ask(self.channel, caller, "POST /v1/plans/check", body)
            if not said["valid"]:
                first = said["problems"][0]
                raise PlanError(f"the published plan '{name}' has problems: {first['path']}: {first['message']}")

    async def check_tools(self, caller: Caller, published: Published) -> None:
        """A plan with an unknown tool is refused before there is a task."""
        names = {tool["name"] for tool in await self.known_tools(caller)}
        for step in published.plan.steps:
            if step.tool is not None and step.tool not in names:
                raise Refused(INVALID_PARAMS, f"Unknown tool: {step.tool}")

    async def story(self, client: Client, name: str) -> Story:
        """A task by any of its names; unknown and foreign are the same."""
        try:
            return await read_story(self.channel, client.caller, name)
        except EverstepError as error:
            raise (no_such_task() if error.code == "not_found" else broken(error)) from error

    async def held(self, client: Client, handle: Any) -> tuple[Story, View]:  # noqa: ANN401 -- whatever a client sends
        """A task by the handle of one of its generations, as it is seen under it; raises if that is unknown by now."""
        if not isinstance(handle, str) or not handle.startswith("mt_"):
            raise no_such_task()
        kept = await self._handle(client, handle, {})
        try:
            story = await read_story(self.channel, client.caller, handle, kept["generation"])
        except EverstepError as error:
            raise (no_such_task() if error.code == "not_found" else broken(error)) from error
        view = self._view(client, kept)
        if expired(story.state, view):
            raise no_such_task()
        return story, await self._estimated(client, story.state, view)

    async def view(self, client: Client, state: TaskState, ttl_ms: int | None = None) -> View:
        """How this client sees a task; it has a handle from now on."""
        body = {"ttl_ms": self.limits.ttl_ms if ttl_ms is None else ttl_ms}
        view = self._view(client, await self._handle(client, state.id, body))
        return await self._estimated(client, state, view)

    async def _estimated(self, client: Client, state: TaskState, view: View) -> View:
        """With what is left of a task that is at work."""
        if state.terminal or state.pauses:
            return view
        shown = await ask(self.channel, client.caller, f"GET /v1/tasks/{state.id}")
        return replace(view, estimate=shown.get("estimate"))

    async def note(self, client: Client, handle: str, notes: Json) -> View:
        """Keep what the client said that is nobody else's business."""
        return self._view(client, await self._handle(client, handle, {"notes": notes}))

    async def latest(self, caller: Caller) -> str:
        """The owner's latest task that waits for somebody."""
        found = await ask(self.channel, caller, "GET /v1/tasks?status=paused&limit=1")
        if not found["items"]:
            raise Refused(INVALID_PARAMS, "There is no task that was handed over")
        return str(found["items"][0]["id"])

    def ttl(self, wanted: Any) -> int:  # noqa: ANN401 -- whatever a client sends
        """How long a handle shall last; too long is refused, never cut."""
        if wanted is None:
            return self.limits.ttl_ms
        whole = isinstance(wanted, int | float) and not isinstance(wanted, bool)
        if not whole or not 0 < wanted <= self.limits.max_ttl_ms:
            raise Refused(INVALID_PARAMS, f"ttl must be more than 0 and at most {self.limits.max_ttl_ms}")
        return int(wanted)

    async def _handle(self, client: Client, name: str, body: Json) -> Json:
        try:
            return await ask(self.channel, client.caller, f"POST /v1/tasks/{name}/handle", body)
        except EverstepError as error:
            raise (no_such_task() if error.code == "not_found" else broken(error)) from error

    def _view(self, client: Client, kept: Json) -> View:
        trusted = self.limits.trust_elicitation
        human = trusted == "always" or (trusted == "stdio" and client.stdio)
        return View(
            handle=kept["id"],
            ttl_ms=kept["ttl_ms"],
            now_ms=self._now_ms(),
            elicits=client.elicits,
            actor_kind="human" if human else "llm",
            aside=kept["notes"],
            variables_bytes=self.limits.variables_bytes,
        )
