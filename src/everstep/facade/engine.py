"""Engine: the Python door. Async; `everstep.blocking` is the same without `await`."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from everstep.bootstrap import EmbeddedDoor, Parts, Source, build, embedded_door, open_local_door
from everstep.domain.commands import Reply
from everstep.domain.errors import EngineClosed, Validation
from everstep.domain.events import Actor, ActorKind, Who
from everstep.domain.ids import Millis, PauseId
from everstep.domain.pauses import PauseType
from everstep.domain.quantities import parse_duration
from everstep.domain.states import TaskStatus
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.desk import Desk, Wish
from everstep.facade.runnable import Runnable, as_plan
from everstep.facade.task import Task
from everstep.facade.views import Event, Pause, Result, named
from everstep.ports.store import PauseFilter, TaskFilter
from everstep.settings import Settings, load_settings


class Engine:
    """Durable tasks in this process, on one store. Opening takes the store; nothing happens before.

    It carries every task of the store; with `worker=False` it only starts, watches and answers.
    """

    def __init__(
        self,
        store: str | Path | None = None,
        *,
        tools: Iterable[object] = (),
        secrets: Mapping[str, str] | None = None,
        config: Mapping[str, JsonValue] | Settings | None = None,
        owner: str = "local",
        worker: bool = True,
    ) -> None:
        settings = config if isinstance(config, Settings) else load_settings(config or {})
        self._settings = settings if store is None else settings.with_store(str(store))
        self._tools = tuple(tools)
        self._secrets = dict(secrets or {})
        self._carries = "all" if worker else "none"
        self._who = Who(owner=owner, actor=Actor(kind=ActorKind.HUMAN, id=owner, via="python"))
        self._parts: Parts | None = None
        self._opened: Desk | None = None
        self._embedded: EmbeddedDoor | None = None

    @classmethod
    def foreground(cls, settings: Settings, *, tools: Iterable[object] = (), via: str = "cli") -> Self:
        """An engine that carries only what it is told to: its own task, and what others hand it."""
        engine = cls(config=settings, tools=tools)
        engine._carries = "own"
        engine._who = Who(owner=settings.owner, actor=Actor(kind=ActorKind.HUMAN, id=settings.owner, via=via))
        return engine

    def resource(self, template: str, function: Callable[..., object]) -> Self:
        """What stands at `docs://guides/{topic}`, for steps with `resources`; before it is opened."""
        if self._opened is not None:
            raise EngineClosed("the engine is open already", what_to_do="say so before it is opened")
        self._tools = (*self._tools, Source(template=template, function=function))
        return self

    @property
    def desk(self) -> Desk:
        """The operations behind every door."""
        if self._opened is None:
            raise EngineClosed("the engine is not open")
        return self._opened

    @property
    def settings(self) -> Settings:
        """What it was made with."""
        return self._settings

    @property
    def who(self) -> Who:
        """On whose behalf this engine acts when Python asks."""
        return self._who

    @property
    def recovered(self) -> int:
        """How many interrupted tasks were found at the start."""
        return self.desk.gate.recovered

    async def open(self, meanwhile: Callable[[Desk], Awaitable[None]] | None = None) -> Self:
        """Lock the store, migrate, scan for interrupted work, accept. `meanwhile`: before the scan, for other doors."""
        if self._opened is not None:
            raise EngineClosed("the engine is open already", what_to_do="open it once, close it once")
        parts = build(self._settings, self._tools, carries=self._carries, secrets=self._secrets)
        await parts.runtime.open()
        self._parts = parts
        self._opened = Desk(parts.runtime, parts.workspace)
        try:
            parts.door = await open_local_door(self._opened, self._settings)
            if meanwhile is not None:
                await meanwhile(self._opened)
            await parts.runtime.recover()
        except BaseException:
            await self.close()
            raise
        return self

    def asgi(self) -> EmbeddedDoor:
        """HTTP, WebSocket, MCP and dashboard as one app, for a path of your own app; it checks tokens itself."""
        self._embedded = self._embedded or embedded_door(self)
        return self._embedded

    async def close(self) -> None:
        """Stop in order; closing twice is harmless."""
        parts, self._parts, self._opened = self._parts, None, None
        if parts is None:
            return
        if self._embedded is not None:
            await self._embedded.close()
        if parts.door is not None:
            await parts.door.close()
        await parts.runtime.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(
        self,
        plan: Runnable | str | Path,
        inputs: JsonObject | None = None,
        *,
        key: str | None = None,
        title: str | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 1,
        pause_timeout: str | None = None,
        limits: JsonObject | None = None,
    ) -> Task:
        """Always a new task, durable on return; the same key, plan and inputs give the same task."""
        loaded = as_plan(plan, self.desk)
        spec, digest = loaded.named()
        wish = Wish(
            plan=spec,
            digest=digest,
            inputs=inputs or {},
            trusted=loaded.trusted,
            key=key,
            title=title,
            labels=labels,
            priority=priority,
            pause_timeout_ms=duration(pause_timeout),
            limits=limits,
        )
        return self._task(await self.desk.submit(wish, self._who))

    async def run(
        self,
        plan: Runnable | str | Path,
        inputs: JsonObject | None = None,
        *,
        key: str | None = None,
        new: bool = False,
        on_pause: str = "wait",
    ) -> Result:
        """Go on with the newest unfinished task of this plan and these inputs, else start one; wait for it."""
        task = None if new or key is not None else await self.unfinished(plan, inputs or {})
        if task is None:
            task = await self.start(plan, inputs, key=key)
        elif any(pause.type == PauseType.USER_REQUESTED for pause in task.pauses):
            await task.resume()
        self.desk.carry(task.task_id)
        return await task.result(on_pause=on_pause)

    async def unfinished(self, plan: Runnable | str | Path, inputs: JsonObject) -> Task | None:
        """The newest unfinished task of the same plan and inputs."""
        loaded = as_plan(plan, self.desk)
        state = await self.desk.newest(*loaded.named(), inputs, self._who)
        return None if state is None else self._task(state)

    async def get(self, id: str) -> Task:
        """A task by id, key, or unique beginning of its id."""
        state = await self.desk.get(id, self._who)
        await self.desk.forecast.of(state)
        return self._task(state)

    async def list(self, *, status: str | None = None, plan: str | None = None, limit: int = 50) -> Sequence[Task]:
        """Tasks of this owner, newest first."""
        statuses = None if status is None else frozenset(TaskStatus(word) for word in status.split(","))
        which = TaskFilter(owner=self._who.owner, statuses=statuses, plan_name=plan, limit=limit)
        page = await self.desk.list(which)
        return [await self.get(item.id) for item in page.items]

    async def events(self, id: str, after: int = 0, *, follow: bool = True) -> AsyncIterator[Event]:
        """A task's journal, then live."""
        task = await self.get(id)
        async for event in task.events(after, follow=follow):
            yield event

    async def inbox(self, task: str | None = None) -> Sequence[Pause]:
        """What waits for someone, oldest first."""
        of = (await self.get(task)).task_id if task is not None else None
        kept = await self.desk.inbox(PauseFilter(owner=self._who.owner, task=of))
        return [Pause(one.task, one.pause, self._answer) for one in kept]

    async def signal(self, event: str, key: str | None = None, data: JsonValue = None, *, id: str | None = None) -> int:
        """Tell every step that waits for this event, or else the first that will; how many have heard it."""
        _, sent = await self.desk.signal(event, key, data, self._who, id=id)
        return sent.delivered

    async def _answer(self, pause: str, reply: Reply, by: str | None) -> None:
        await self.desk.answer(PauseId(pause), named(self._who, by), reply)

    def _task(self, state: TaskState) -> Task:
        return Task(self.desk, self._who, state)


def duration(text: str | None) -> Millis | None:
    """A length of time as it is written; raises Validation."""
    length = None if text is None else parse_duration(text)
    if text is not None and length is None:
        raise Validation(f"'{text}' is not a duration, write 500ms, 30s, 1h30m")
    return length
