"""What a case of the store suite stands on: a rig, an open store, and short ways to common scenes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol, TypeAlias, TypeVar

from everstep.domain.errors import EverstepError
from everstep.domain.ids import Seq, TaskId
from everstep.domain.task import Command, StepCommit, Sweep, TaskState
from everstep.ports.store import Claimed, Commit, Committed, Stale, Store, Worker
from everstep.testing.conformance import facts as f

E = TypeVar("E", bound=EverstepError)


class Rig(Protocol):
    """How the store under test is opened, again and again, on the same contents."""

    async def open(self, worker: Worker) -> Store:
        """A store that this worker has opened."""

    async def register(self, worker: Worker) -> None:
        """Make another incarnation known, as if it shared the store."""


Case: TypeAlias = Callable[[Rig], Awaitable[None]]


class Scene:
    """One open store and the worker that opened it."""

    def __init__(self, store: Store, me: Worker) -> None:
        self.store = store
        self.me = me

    async def created(self, **wanted: object) -> TaskId:
        """A queued task."""
        new = f.new_task(**wanted)  # type: ignore[arg-type]
        await self.store.create_tasks((new,))
        return new.id

    async def held(self, **wanted: object) -> TaskState:
        """A task that we hold."""
        task = await self.created(**wanted)
        (one,) = await self.claim(task)
        assert one.lease.task == task
        return await self.load(task)

    async def claim(self, *tasks: TaskId, by: Worker | None = None) -> list[Claimed]:
        """These, or whatever there is."""
        asked = f.claim(by or self.me, only=frozenset(tasks) if tasks else None)
        return list(await self.store.claim_tasks(asked))

    async def load(self, task: TaskId) -> TaskState:
        """As the journal says."""
        (state,) = await self.store.load_tasks((task,))
        assert state is not None
        return state

    async def commit(self, commit: StepCommit) -> Commit:
        """One alone."""
        (answer,) = await self.store.commit_steps((commit,))
        return answer

    async def command(self, command: Command) -> Commit:
        """One alone."""
        (answer,) = await self.store.commit_commands((command,))
        return answer

    async def sweep(self, sweep: Sweep) -> Commit:
        """One alone."""
        (answer,) = await self.store.sweep((sweep,))
        return answer

    async def seqs(self, task: TaskId) -> list[int]:
        """The whole journal, by its numbers."""
        return [event.seq for event in await self.store.read_events(task, Seq(0), 100_000)]

    async def sound(self) -> None:
        """Rows follow from journals."""
        problems = [str(flaw) for flaw in await self.store.check()]
        assert not problems, problems


@asynccontextmanager
async def scene(rig: Rig, worker: Worker | None = None) -> AsyncIterator[Scene]:
    """A store, open for one case and sound at its end."""
    me = worker or f.worker()
    store = await rig.open(me)
    try:
        on = Scene(store, me)
        yield on
        await on.sound()
    finally:
        await store.close()


def done(answer: Commit) -> Committed:
    """It must have been taken."""
    assert isinstance(answer, Committed), answer
    return answer


def refused(answer: Commit) -> Stale:
    """It must have been refused."""
    assert isinstance(answer, Stale), answer
    return answer


async def raises(kind: type[E], work: Awaitable[object]) -> E:
    """It must be refused with this error."""
    try:
        answer = await work
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} expected, not {answer!r}")
