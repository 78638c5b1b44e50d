"""TestEngine: the real engine on a store in memory, with a clock that tests move and chance from a seed."""

import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from everstep.adapters.stores.memory import MemoryStore
from everstep.bootstrap import Driver, Gauge, KnownSecrets, Outside, Parts, adapters_of, assemble, scripts_of
from everstep.domain.commands import Reply
from everstep.domain.events import Actor, ActorKind, Who
from everstep.domain.ids import PauseId, StepPath, TaskId
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.desk import Desk, Wish
from everstep.facade.engine import duration
from everstep.facade.runnable import Runnable, as_plan
from everstep.facade.task import Task
from everstep.facade.views import Pause, named
from everstep.ports.fault import Fault, no_fault
from everstep.ports.sink import Listener
from everstep.ports.store import PauseFilter
from everstep.settings import Settings, load_settings
from everstep.testing.clock import NoPulse, VirtualClock
from everstep.testing.fakes import Fake, with_fakes
from everstep.wire.values import Codec

ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"


class SeededEntropy:
    """Chance that repeats."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 -- repeatable on purpose

    def new_id(self, prefix: str) -> str:
        """As the real one, drawn from the seed."""
        return f"{prefix}_{''.join(self._random.choices(ALPHABET, k=26))}"

    def secret(self) -> bytes:
        """As long as the real one, and no secret at all."""
        return self._random.randbytes(32)

    def draw(self) -> float:
        """Uniform in [0, 1)."""
        return self._random.random()


class QuietSink:
    """Remarks, kept for a failing test to show."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, JsonObject]] = []
        self._listeners: list[Listener] = []

    def note(self, event: str, **fields: JsonValue) -> None:
        """Kept."""
        self.notes.append((event, fields))

    def trouble(self, event: str, error: BaseException, **fields: JsonValue) -> None:
        """Kept."""
        self.notes.append((event, {**fields, "error": repr(error)}))

    def progress(self, task: TaskId, step: StepPath, fraction: float, text: str | None) -> None:
        """Kept."""
        self.notes.append(("progress", {"task": task, "step": step, "fraction": fraction, "text": text}))
        for listener in self._listeners:
            listener.progress(task, step, fraction, text)

    def output(self, task: TaskId, step: StepPath, attempt: int, text: str) -> None:
        """Kept."""
        self.notes.append(("output", {"task": task, "step": step, "attempt": attempt, "text": text}))
        for listener in self._listeners:
            listener.output(task, step, attempt, text)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Passed on, too."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)


class Inbox:
    """Open pauses, oldest first, as they stood when somebody looked."""

    def __init__(self, pauses: list[Pause]) -> None:
        self.all = pauses

    def only(self) -> Pause:
        """The one that is there."""
        assert len(self.all) == 1, f"there are {len(self.all)} open pauses: {self.all}"
        return self.all[0]


class TestEngine:
    """The engine as it is, in virtual time. `crash()` kills it where it stands; the store survives."""

    __test__ = False  # pytest: this is no test

    def __init__(
        self,
        tools: Iterable[object] | Mapping[str, Fake] = (),
        *,
        seed: int = 0,
        store: MemoryStore | None = None,
        fault: Fault = no_fault,
        config: Mapping[str, JsonValue] | None = None,
        secrets: Mapping[str, str] | None = None,
        workspace: Path | None = None,
        more_tools: Iterable[object] = (),
        clock: VirtualClock | None = None,
        gauge: Gauge | None = None,
        driver: Driver | None = None,
    ) -> None:
        self._gauge = gauge
        self._driver = driver
        here = {} if workspace is None else {"workspace": str(workspace)}
        self._settings = load_settings({**here, **(config or {})}, env={})
        self._fakes = tools if isinstance(tools, Mapping) else {}
        self._tools = (*more_tools, *(() if isinstance(tools, Mapping) else tools))
        self._fault = fault
        self._secrets = secrets or {}
        self._who = Who(owner="local", actor=Actor(kind=ActorKind.HUMAN, id="local", via="python"))
        self.clock = clock or VirtualClock()
        self.entropy = SeededEntropy(seed)
        self.sink = QuietSink()
        self.store = store or MemoryStore()
        self._parts: Parts | None = None
        self._desk: Desk | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """A new incarnation on the same store."""
        outside = Outside(
            store=self.store,
            clock=self.clock,
            pulse=NoPulse(),
            entropy=self.entropy,
            sink=self.sink,
            fault=self._fault,
            codec=Codec(),
            gauge=self._gauge,
            driver=self._driver,
            secrets=KnownSecrets(self._secrets, self._settings.grants),
        )
        adapters = adapters_of(self._settings, self._tools, outside.codec, outside.secrets)
        faked = with_fakes(adapters, self._fakes, clock=self.clock)
        scripts = scripts_of(self._settings, self._tools)
        self._parts = assemble(self._settings, faked, outside, carries="all", scripts=scripts)
        await self._parts.runtime.open()
        self._desk = Desk(self._parts.runtime, self._parts.workspace)
        await self._parts.runtime.recover()

    async def close(self) -> None:
        """Planned stop."""
        if self._parts is not None:
            await self._parts.runtime.close()
            self._parts = None

    async def crash(self, *, down: str | None = None) -> None:
        """Die where it stands; start again at once, or after having been down for a while."""
        assert self._parts is not None
        await self._parts.runtime.die()
        if down is not None:
            await self.clock.advance(down)
        await self.open()

    @property
    def who(self) -> Who:
        """On whose behalf tests ask."""
        return self._who

    @property
    def settings(self) -> Settings:
        """What it runs with."""
        return self._settings

    @property
    def desk(self) -> Desk:
        """The operations behind every door."""
        assert self._desk is not None
        return self._desk

    async def start(
        self,
        plan: Runnable | str | Path,
        inputs: JsonObject | None = None,
        *,
        key: str | None = None,
        pause_timeout: str | None = None,
        limits: JsonObject | None = None,
    ) -> Task:
        """A new task."""
        loaded = as_plan(plan, self.desk)
        wish = Wish(
            plan=loaded.spec,
            digest=loaded.digest,
            inputs=inputs or {},
            trusted=loaded.trusted,
            key=key,
            pause_timeout_ms=duration(pause_timeout),
            limits=limits,
        )
        return Task(self.desk, self._who, await self.desk.submit(wish, self._who))

    async def get(self, task: str) -> Task:
        """A task again, as after a crash."""
        state = await self.desk.get(task, self._who)
        await self.desk.forecast.of(state)
        return Task(self.desk, self._who, state)

    async def signal(self, event: str, key: str | None = None, data: JsonValue = None, *, id: str | None = None) -> int:
        """Tell the steps that wait for this event; how many have heard it."""
        _, sent = await self.desk.signal(event, key, data, self._who, id=id)
        return sent.delivered

    @property
    def inbox(self) -> "Inbox":
        """What waits for someone now."""
        kept = self.store.pauses(PauseFilter(owner=self._who.owner))
        return Inbox([Pause(one.task, one.pause, self._answer) for one in kept])

    async def _answer(self, pause: str, reply: Reply, by: str | None) -> None:
        await self.desk.answer(PauseId(pause), named(self._who, by), reply)
