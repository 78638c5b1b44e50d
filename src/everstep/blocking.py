"""The synchronous face: the same names without `await`. A loop in a thread of its own, and no logic.

Works inside a running loop and in notebooks too, where it blocks the caller: a line in the log names the other way.
"""

import asyncio
import logging
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from everstep.bootstrap import new_loop
from everstep.domain.states import TaskStatus
from everstep.domain.values import JsonObject, JsonValue
from everstep.facade.engine import Engine as AsyncEngine
from everstep.facade.prompting import ask, tell
from everstep.facade.rework_blocking import ReworkedBlockingTask
from everstep.facade.runnable import Runnable
from everstep.facade.task import Task as AsyncTask
from everstep.facade.views import Event, Result
from everstep.facade.views import Pause as AsyncPause
from everstep.settings import Settings, load_settings

T = TypeVar("T")


def run(
    plan: Runnable | str | Path,
    inputs: JsonObject | None = None,
    *,
    key: str | None = None,
    new: bool = False,
    store: str | Path | None = None,
    on_pause: str | None = None,
) -> Result:
    """Go on with the newest unfinished task of this plan and these inputs, else start one; wait for it.

    Carries only this task. `on_pause`: "ask" prompts (the default on a terminal), "return" gives the paused result
    (the default elsewhere, and then a line on stderr says where to answer), "wait" waits for somebody else's answer.
    """
    _say_if_awaitable("await Engine().run(plan)")
    usual = load_settings({})
    settings = usual if store is None else usual.with_store(str(store))
    how = on_pause or ("ask" if sys.stdin.isatty() and sys.stderr.isatty() else "return")
    until = "return" if how == "ask" else how
    with Engine.foreground(settings, tools=_functions(plan, settings)) as engine:
        result = engine.run(plan, inputs, key=key, new=new, on_pause=until)
        while how == "ask" and result.status == TaskStatus.PAUSED and ask(engine.inbox(result.task_id)):
            result = engine.get(result.task_id).result(on_pause=until)
        if on_pause is None and result.status == TaskStatus.PAUSED:
            tell(engine.inbox(result.task_id))
        return result


def _functions(plan: Runnable | str | Path, settings: Settings) -> list[object]:
    """Functions that the plan was built with; those of the project's own modules are known to the engine."""
    return [one for one in getattr(plan, "tools", ()) if one.__module__ not in settings.tools]


class LoopThread:
    """An event loop that nobody else uses."""

    def __init__(self) -> None:
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="everstep-loop", daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it there, wait for it here; who stops waiting (Ctrl-C) ends it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            while not future.done():
                wait([future], 0.5)  # a Ctrl-C in the moment before waiting is heard on waking up
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """One after the other, as they come."""
        try:
            while True:
                try:
                    item = self.wait(_next(items))
                except StopAsyncIteration:
                    return
                yield item
        finally:
            self.wait(_close(items))

    def close(self) -> None:
        """End the thread; what still goes on there is cancelled."""
        self.wait(_finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Engine:
    """Durable tasks in this process, on one store. `with Engine("work.db") as engine: …`."""

    def __init__(
        self,
        store: str | Path | None = None,
        *,
        tools: Iterable[object] = (),
        config: Mapping[str, JsonValue] | Settings | None = None,
        owner: str = "local",
        worker: bool = True,
    ) -> None:
        self._engine = AsyncEngine(store, tools=tools, config=config, owner=owner, worker=worker)
        self._thread: LoopThread | None = None

    @classmethod
    def foreground(cls, settings: Settings, *, tools: Iterable[object] = ()) -> Self:
        """An engine that carries only what it is told to."""
        engine = cls(config=settings)
        engine._engine = AsyncEngine.foreground(settings, tools=tools, via="python")
        return engine

    @property
    def recovered(self) -> int:
        return self._engine.recovered

    def open(self) -> Self:
        _say_if_awaitable("async with Engine(...) as engine")
        self._thread = LoopThread()
        try:
            self._thread.wait(self._engine.open())
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            try:
                thread.wait(self._engine.close())
            finally:
                thread.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def start(
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
    ) -> "Task":
        started = self._engine.start(
            plan,
            inputs,
            key=key,
            title=title,
            labels=labels,
            priority=priority,
            pause_timeout=pause_timeout,
            limits=limits,
        )
        return Task(self._wait(started), self._open())

    def run(
        self,
        plan: Runnable | str | Path,
        inputs: JsonObject | None = None,
        *,
        key: str | None = None,
        new: bool = False,
        on_pause: str = "wait",
    ) -> Result:
        return self._wait(self._engine.run(plan, inputs, key=key, new=new, on_pause=on_pause))

    def get(self, id: str) -> "Task":
        return Task(self._wait(self._engine.get(id)), self._open())

    def list(self, *, status: str | None = None, plan: str | None = None, limit: int = 50) -> Sequence["Task"]:
        found = self._wait(self._engine.list(status=status, plan=plan, limit=limit))
        return [Task(task, self._open()) for task in found]

    def events(self, id: str, after: int = 0, *, follow: bool = True) -> Iterator[Event]:
        return self._open().iterate(self._engine.events(id, after, follow=follow))

    def inbox(self, task: str | None = None) -> Sequence["Pause"]:
        return [Pause(pause, self._open()) for pause in self._wait(self._engine.inbox(task))]

    def signal(self, event: str, key: str | None = None, data: JsonValue = None, *, id: str | None = None) -> int:
        return self._wait(self._engine.signal(event, key, data, id=id))

    def _open(self) -> LoopThread:
        if self._thread is None:
            _ = self._engine.desk  # says what is wrong
            raise AssertionError("an open engine has its thread")
        return self._thread

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._thread is None:
            work.close()
        return self._open().wait(work)


class Task(ReworkedBlockingTask):
    """A handle on one task; its properties are as of the last look."""

    _task: AsyncTask
    _thread: LoopThread

    def __init__(self, task: AsyncTask, thread: LoopThread) -> None:
        super().__init__(task, thread)

    @property
    def id(self) -> str:
        return self._task.id

    @property
    def status(self) -> str:
        return self._task.status

    @property
    def outcome(self) -> str | None:
        return self._task.outcome

    @property
    def outputs(self) -> JsonObject | None:
        return self._task.outputs

    @property
    def error(self) -> JsonObject | None:
        return self._task.error

    @property
    def pauses(self) -> tuple["Pause", ...]:
        return tuple(Pause(pause, self._thread) for pause in self._task.pauses)

    @property
    def pause_reason(self) -> "Pause | None":
        return next(iter(self.pauses), None)

    def refresh(self) -> Self:
        self._thread.wait(self._task.refresh())
        return self

    def events(self, after: int = 0, *, follow: bool = True) -> Iterator[Event]:
        return self._thread.iterate(self._task.events(after, follow=follow))

    def result(self, *, on_pause: str = "wait") -> Result:
        return self._thread.wait(self._task.result(on_pause=on_pause))

    def pause(self, mode: str = "graceful", *, note: str | None = None) -> Self:
        self._thread.wait(self._task.pause(mode, note=note))
        return self

    def resume(self, *, note: str | None = None) -> Self:
        self._thread.wait(self._task.resume(note=note))
        return self

    def cancel(self, *, note: str | None = None) -> Self:
        self._thread.wait(self._task.cancel(note=note))
        return self

    def __repr__(self) -> str:
        return repr(self._task)


class Pause:
    """An open question of a task, and every way to answer it."""

    def __init__(self, pause: AsyncPause, thread: LoopThread) -> None:
        self._pause = pause
        self._thread = thread
        self.task, self.id, self.step, self.type = pause.task, pause.id, pause.step, pause.type
        self.title, self.why, self.guidance, self.answers = pause.title, pause.why, pause.guidance, pause.answers
        self.call, self.show, self.may_answer, self.expires_at = (
            pause.call,
            pause.show,
            pause.may_answer,
            pause.expires_at,
        )

    def approve(self, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.approve(note=note, by=by))

    def edit(self, arguments: JsonObject, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.edit(arguments, note=note, by=by))

    def reject(self, note: str, *, by: str | None = None) -> None:
        self._thread.wait(self._pause.reject(note, by=by))

    def happened(self, output: JsonValue = None, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.happened(output, note=note, by=by))

    def not_happened(self, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.not_happened(note=note, by=by))

    def retry(self, *, at: datetime | None = None, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.retry(at=at, note=note, by=by))

    def retry_with(self, arguments: JsonObject, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.retry_with(arguments, note=note, by=by))

    def supply_arguments(self, arguments: JsonObject, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.supply_arguments(arguments, note=note, by=by))

    def run_producer(self, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.run_producer(note=note, by=by))

    def raise_limit(self, max: float, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.raise_limit(max, note=note, by=by))

    def supply_output(self, output: JsonValue, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.supply_output(output, note=note, by=by))

    def answer(self, value: JsonValue, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.answer(value, note=note, by=by))

    def resume(self, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.resume(note=note, by=by))

    def skip(self, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.skip(note=note, by=by))

    def fail(self, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.fail(note=note, by=by))

    def cancel(self, *, note: str | None = None, by: str | None = None) -> None:
        self._thread.wait(self._pause.cancel(note=note, by=by))

    def __repr__(self) -> str:
        return repr(self._pause)


def _say_if_awaitable(spelling: str) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    logging.getLogger("everstep").warning("this blocks a running event loop; without blocking: %s", spelling)


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)


async def _close(items: AsyncIterator[object]) -> None:
    if (close := getattr(items, "aclose", None)) is not None:
        await close()


async def _finish() -> None:
    """As `asyncio.run` ends: nothing of the loop outlives it."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    loop = asyncio.get_running_loop()
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()
