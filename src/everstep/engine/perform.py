"""A durable function at work: its code runs from the top, and hears recorded outcomes in the order they were recorded.

It is run again after every restart and every wait. Between two outcomes it runs until every branch of it waits for a
call (it is *quiet*); only then is it told the next one. So the same journal always meets the same code in the same
state, and whatever the code asks for beyond the journal is new.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, TypeVar

from everstep.domain.ids import StepPath
from everstep.domain.record import record
from everstep.domain.states import StepStatus
from everstep.domain.task import StepState, TaskState
from everstep.domain.values import JsonObject, JsonValue, Sealed
from everstep.ports.codec import Codec
from everstep.ports.script import Ask, CallFailed, Script

T = TypeVar("T")
TURNS: Final = 50
"""So many turns of the loop code gets to come to its next call; then the walk goes on, and is woken."""


@record
class Wanted:
    """A call as the code asks for it, sealed."""

    ask: Ask
    input: Sealed


@record
class CodeEnd:
    """How the code ended: with a value, or by an exception."""

    value: JsonValue = None
    error: BaseException | None = None


class _Branch:
    """One line of calls: the function itself, or a branch of a `gather`."""

    __slots__ = ("counts", "prefix")

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.counts: dict[str, int] = {}

    def name(self, word: str) -> str:
        self.counts[word] = number = self.counts.get(word, 0) + 1
        return f"{self.prefix}{word}_{number}"


_BRANCH: ContextVar[_Branch] = ContextVar("everstep_branch")


class Performance:
    """One run of the code of one task. Lives as long as the walk that carries the task."""

    def __init__(self, script: Script, codec: Codec, wake: Callable[[], None]) -> None:
        self.script = script
        self.wanted: dict[StepPath, Wanted] = {}
        """All that was asked for, in this order."""
        self.open: dict[StepPath, None] = {}
        """Of these, what the code waits for."""
        self.stages: tuple[str, ...] = ()
        self.ended: CodeEnd | None = None
        self.fresh = True
        """Whether the code has asked, heard or ended since anybody looked at what it asks for."""
        self.heard = 0
        """How many recorded ends it has been told of."""
        self._codec = codec
        self._loop = asyncio.get_running_loop()
        self._wake = wake
        self._awake = 0
        self._closed = False
        self._answers: dict[StepPath, asyncio.Future[StepState]] = {}
        self._waiters: dict[StepPath, int] = {}
        self._branches: set[asyncio.Task[Any]] = set()

    # The engine's side

    def begin(self, inputs: JsonObject) -> None:
        """Run the code."""
        self.spawn(self._perform(inputs), self._over)

    @property
    def thinking(self) -> bool:
        """Whether some branch of the code is at work between two calls."""
        return self._awake > 0

    @property
    def fresh_and_quiet(self) -> bool:
        """Whether there is something new to look at, and it is all that comes now."""
        return self.fresh and not self.thinking

    def caught_up(self, state: TaskState) -> bool:
        """Whether it is quiet, and has heard all that is recorded."""
        return not self.thinking and self.heard >= len(state.ends)

    async def quiet(self) -> bool:
        """Whether every branch waits for a call, after a few turns of the loop."""
        for _ in range(TURNS):
            if not self.thinking:
                return True
            await asyncio.sleep(0)
        return False

    def tell(self, path: StepPath, step: StepState) -> None:
        """The next recorded end."""
        self.heard += 1
        self.fresh = True  # whatever was asked for before may wait for nothing but this
        self.open.pop(path, None)
        self._awake += self._waiters.pop(path, 0)
        self._answers[path].set_result(step)

    def refuse(self, path: StepPath, error: Exception) -> None:
        """A call that cannot become a step: the code is told so, and nothing is recorded."""
        self.open.pop(path)
        self._awake += self._waiters.pop(path, 0)
        self._answers.pop(path).set_exception(error)
        del self.wanted[path]

    def close(self) -> None:
        """The walk ends, and the code with it."""
        self._closed = True
        for branch in self._branches:
            branch.cancel()

    # The code's side

    def name(self, word: str) -> str:
        """The next id of this kind in the branch that asks."""
        return self._here().name(word)

    def expect(self, stages: Sequence[str]) -> None:
        """Said to whoever watches with the next commit."""
        self.stages = tuple(stages)

    def ask(self, ask: Ask) -> Awaitable[JsonValue]:
        """Nothing is asked for before somebody waits for it."""
        return _Answer(self, ask)

    async def answer(self, ask: Ask) -> JsonValue:
        """What came of the call; the same for everybody who asks for it."""
        self._here()
        path = StepPath(ask.spec.id)
        known = self.wanted.get(path)
        if known is None:
            self.wanted[path] = Wanted(ask=ask, input=self._codec.seal_copy(dict(ask.arguments)))
            self.open[path] = None
            self._answers[path] = self._loop.create_future()
            self.fresh = True
        elif known.ask is not ask:
            raise ValueError(f"two calls have the id '{path}'; give one of them another `id`")
        answer = self._answers[path]
        if not answer.done():
            await self._wait_for(path)
        step = answer.result()
        if step.status is StepStatus.FAILED:
            assert step.error is not None
            raise CallFailed(path, step.error.failure)
        return None if step.output is None else self._codec.fresh(step.output)

    async def _wait_for(self, path: StepPath) -> None:
        self._waiters[path] = self._waiters.get(path, 0) + 1
        self.rest()
        try:
            await asyncio.shield(self._answers[path])
        except asyncio.CancelledError:
            if path in self._waiters:  # the code itself gave it up: it is at work again
                self._waiters[path] -= 1
                self._awake += 1
            raise

    async def gather(self, branches: Sequence[Awaitable[T]], limit: int | None) -> list[T]:
        """Every branch comes to its end, whatever becomes of the others; then the first failure is raised."""
        prefix = self._here().name("gather")
        if not branches:
            return []
        crowd = _Crowd(self, prefix, branches)
        for _ in range(min(limit or len(branches), len(branches))):
            crowd.start()
        self.rest()
        await asyncio.shield(crowd.done)
        for number in sorted(crowd.errors):
            raise crowd.errors[number]
        return [crowd.results[number] for number in range(len(branches))]

    def spawn(self, work: Awaitable[T], over: Callable[["asyncio.Task[T]"], None], prefix: str = "") -> None:
        """One more branch; `over` is told how it ended, and it counts as at work until then."""
        context = copy_context()
        context.run(_BRANCH.set, _Branch(prefix))
        self._awake += 1
        task = self._loop.create_task(_awaited(work), context=context)
        self._branches.add(task)
        task.add_done_callback(self._branches.discard)
        task.add_done_callback(over)

    def rest(self) -> None:
        """One branch less is at work."""
        self._awake -= 1
        if not self._awake and not self._closed:
            self._wake()

    def rise(self) -> None:
        """What a branch waited for has come."""
        self._awake += 1

    async def _perform(self, inputs: JsonObject) -> JsonValue:
        return await self.script.perform(self, inputs)

    def _over(self, main: "asyncio.Task[JsonValue]") -> None:
        if not main.cancelled():
            error = main.exception()
            self.ended = CodeEnd(error=error) if error is not None else CodeEnd(value=main.result())
            self.fresh = True
        self.rest()

    def _here(self) -> _Branch:
        """The branch that asks; the code may wait for calls in no task of its own making."""
        if self._closed:
            raise asyncio.CancelledError
        if asyncio.current_task() not in self._branches:
            raise TypeError("a durable function awaits its calls itself, or through ctx.gather, not in other tasks")
        return _BRANCH.get()


async def _awaited(work: Awaitable[T]) -> T:
    return await work


class _Answer:
    """A call that is asked for when it is awaited."""

    __slots__ = ("_ask", "_performance")

    def __init__(self, performance: Performance, ask: Ask) -> None:
        self._performance = performance
        self._ask = ask

    def __await__(self) -> Generator[Any, None, JsonValue]:
        return self._performance.answer(self._ask).__await__()


class _Crowd:
    """The branches of one `gather`, started in order as far as its limit allows."""

    def __init__(self, performance: Performance, prefix: str, branches: Sequence[Awaitable[Any]]) -> None:
        self.results: dict[int, Any] = {}
        self.errors: dict[int, BaseException] = {}
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._performance = performance
        self._prefix = prefix
        self._branches = branches
        self._next = 0
        self._ended = 0

    def start(self) -> None:
        """The next branch."""
        number, self._next = self._next, self._next + 1
        prefix = f"{self._prefix}_{number + 1}_"
        self._performance.spawn(self._branches[number], partial(self._over, number), prefix)

    def _over(self, number: int, branch: "asyncio.Task[Any]") -> None:
        error = asyncio.CancelledError() if branch.cancelled() else branch.exception()
        if error is not None:
            self.errors[number] = error
        else:
            self.results[number] = branch.result()
        self._ended += 1
        if self._next < len(self._branches):
            self.start()
        elif self._ended == len(self._branches):
            self._performance.rise()
            self.done.set_result(None)
        self._performance.rest()
