"""Follow one task until it ends, needs someone, or whoever follows has seen enough.

Everything that can happen meanwhile (a frame, a typed line, Ctrl-C, a moment passing) comes through one queue, so there
is one place that decides what it means.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from textwrap import wrap
from typing import Any, Final, TypeAlias

from everstep.domain.errors import EverstepError
from everstep.doors.cli.dialogue import LEAVE, Dialogue
from everstep.doors.cli.keyboard import END, Keyboard, in_front
from everstep.doors.cli.render import Line
from everstep.doors.cli.screens import Screen
from everstep.doors.cli.session import Session, width
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.view import TaskView
from everstep.doors.cli.words import cut, listed

Json: TypeAlias = dict[str, Any]

PAINT_S: Final = 0.1
EXIT_INTERRUPTED: Final = 130


class Stop(Enum):
    """Why following ended."""

    ENDED = auto()
    NEEDS_SOMEONE = auto()
    TIMEOUT = auto()
    INTERRUPTED = auto()


@dataclass(slots=True, kw_only=True)
class Manner:
    """How a command follows."""

    waits: bool = False
    """Stay when somebody is needed."""
    asks: bool = False
    """Put the questions to whoever sits here."""
    pauses: bool = False
    """Ctrl-C pauses the task; else it only leaves."""
    approves: bool = False
    """`--yes`: allow every call that waits for it, and answer nothing else."""
    fail_fast: bool = False
    timeout_s: float | None = None
    reconnect: Callable[[], Awaitable[Connection]]
    """Whom to turn to when the engine we followed has gone."""


@dataclass(slots=True)
class Follower:
    """One task being followed."""

    connection: Connection
    view: TaskView
    screen: Screen
    session: Session
    manner: Manner
    presses: int = 0
    """How often Ctrl-C was pressed."""
    _queue: "asyncio.Queue[tuple[str, Any]]" = field(default_factory=asyncio.Queue)
    _dialogue: Dialogue | None = None
    _settled: set[str] = field(default_factory=set)
    """Pauses that were answered or left here."""
    _approved: set[str] = field(default_factory=set)
    """Pauses that were approved by `--yes`; their end is on its way."""
    _left: bool = False
    _keyboard: Keyboard = field(init=False)
    _reader: "asyncio.Task[None] | None" = None

    def __post_init__(self) -> None:
        self._keyboard = Keyboard(lambda line: self._queue.put_nowait(("line", line)))

    async def follow(self) -> Stop:
        """Until there is nothing more to see here."""
        with self._signals():
            self._reader = asyncio.create_task(self._read())
            try:
                return await self._attend()
            finally:
                self._keyboard.leave()
                self._reader.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._reader
                self.screen.close()

    # What happens

    async def _attend(self) -> Stop:
        deadline = time.monotonic() + self.manner.timeout_s if self.manner.timeout_s is not None else None
        while True:
            if self.manner.approves:
                await self._approve()
            stop = self._verdict()
            if stop is not None:
                return stop
            if deadline is not None and time.monotonic() >= deadline:
                return Stop.TIMEOUT
            self._converse()
            try:
                async with asyncio.timeout(PAINT_S):
                    kind, what = await self._queue.get()
            except TimeoutError:
                self.screen.paint()
                continue
            await self._happened(kind, what)
            self._queue.task_done()

    async def _happened(self, kind: str, what: Any) -> None:  # noqa: ANN401 -- one type per kind
        match kind:
            case "frame":
                self._frame(what)
            case "line":
                await self._line(what)
            case "ctrl-c":
                await self._pressed()
            case _:
                raise what

    def _verdict(self) -> Stop | None:
        view, manner = self.view, self.manner
        if view.terminal:
            return Stop.ENDED
        if self.presses and (view.status == "paused" or not manner.pauses):
            return Stop.INTERRUPTED
        if manner.fail_fast and any(step.status == "failed" for step in view.steps.values()):
            return Stop.NEEDS_SOMEONE
        idle = self._queue.empty() and view.status == "paused" and bool(view.pauses.keys() - self._approved)
        if idle and not manner.waits and (self._left or not manner.asks):
            return Stop.NEEDS_SOMEONE
        return None

    async def _read(self) -> None:
        """Frames into the queue; when the engine goes, whoever comes next is asked for the rest."""
        try:
            while not self.view.terminal:
                async for frame in self.connection.stream(
                    path_of("tasks", self.view.id, "events", after=self.view.seq)
                ):
                    self._queue.put_nowait(("frame", frame))
                    if self._queue.qsize() > 1000:
                        await asyncio.sleep(0)
                await self._queue.join()  # so that `seq` is where the stream ended
                if not self._over():
                    self.connection = await self.manner.reconnect()
        except EverstepError as error:
            self._queue.put_nowait(("broken", error))

    def _over(self) -> bool:
        return self.view.terminal

    def _frame(self, frame: Json) -> None:
        before = set(self.view.pauses)
        self.view.absorb(frame)
        self.screen.frame(frame)
        gone = before - set(self.view.pauses)
        if self._dialogue is not None and self._dialogue.id in gone:
            self._answered_elsewhere(frame)
            self._close_dialogue()

    def _answered_elsewhere(self, frame: Json) -> None:
        assert self._dialogue is not None
        event = frame.get("event") or {}
        actor = event.get("actor") or {}
        if self._dialogue.id not in self._settled and event.get("type") == "pause.answered":
            said = event["data"].get("answer")
            text = f"{actor.get('id')} answered through {actor.get('via')}: {said}"
            self.screen.remark(((" || ", "yellow"), (text, "")))

    # Talking

    def _converse(self) -> None:
        """Open a question for the oldest pause nobody here has dealt with, and show what is being typed."""
        if not self.manner.asks or self.presses:
            return
        if self._dialogue is None:
            open_ones = [pause for name, pause in self.view.pauses.items() if name not in self._settled]
            if not open_ones or not in_front():
                return
            self._dialogue = Dialogue(open_ones[0])
            self._keyboard.listen()
        self.screen.ask(question_lines(self._dialogue, self._keyboard.typed, width()))

    async def _approve(self) -> None:
        for name, pause in list(self.view.pauses.items()):
            if name in self._settled or pause["reason"]["type"] != "approvalRequired":
                continue
            self._settled.add(name)
            said = next(one["request"]["body"] for one in pause["answers"] if one["answer"] == "approve")
            try:
                await ask(self.connection, "POST", path_of("inbox", name, "answer"), {**said, "note": "--yes"})
                self._approved.add(name)
            except EverstepError as error:
                self.screen.remark(((" || ", "yellow"), (error.message, "")))

    async def _line(self, line: str) -> None:
        dialogue = self._dialogue
        if dialogue is None:
            return None
        body = LEAVE if line == END else dialogue.hear(line)
        if dialogue.viewing:
            for detail in dialogue.details():
                self.screen.remark((("    ", ""), (detail, "dim")))
        if body is None:
            return None
        if isinstance(body, str):
            self._left = True
            self._settled.add(dialogue.id)
            return self._close_dialogue()
        try:
            await ask(self.connection, "POST", path_of("inbox", dialogue.id, "answer"), body)
        except EverstepError as error:
            dialogue.refused(error.message)
            return None
        self._settled.add(dialogue.id)
        return self._close_dialogue()

    def _close_dialogue(self) -> None:
        self._dialogue = None
        self._keyboard.leave()
        self.screen.ask(())

    # Leaving

    async def _pressed(self) -> None:
        if self._dialogue is not None:
            self._close_dialogue()
        if not self.manner.pauses or self.view.status == "paused":
            return
        names = [step.id for step in self.view.running]
        after = f" after {listed(names)}" if names else ""
        self.screen.remark(((f" || pausing{after}; Ctrl-C again leaves at once", "yellow"),))
        with contextlib.suppress(EverstepError):  # it may have ended in between: the verdict sees that
            await ask(self.connection, "POST", path_of("tasks", self.view.id, "pause"), {"note": "Ctrl-C"})

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """The first Ctrl-C asks, the second leaves, however busy the loop is."""
        loop = asyncio.get_running_loop()

        def pressed(_number: int, _frame: object) -> None:
            self.presses += 1
            if self.presses > 1:
                self._leave_at_once()
            loop.call_soon_threadsafe(self._queue.put_nowait, ("ctrl-c", None))

        before = signal.signal(signal.SIGINT, pressed)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _leave_at_once(self) -> None:
        self._keyboard.leave()
        self.screen.close()
        if self.session.json:
            error = {"code": "interrupted", "message": "left at once; it goes on at the next start"}
            result = {"type": "result", "ok": False, "exit_code": EXIT_INTERRUPTED, "error": error}
            self.session.result_json({**result, "task": {"id": self.view.id, "status": self.view.status}})
        self.session.warn(f"\nLeft at once. It is recovered at the next start: everstep resume {self.view.id}")
        os._exit(EXIT_INTERRUPTED)


def question_lines(dialogue: Dialogue, typed: str, columns: int) -> list[Line]:
    """The question, what would have prevented it, and what is being typed."""
    lines: list[Line] = [((" || ", "yellow"), (cut(dialogue.title, max(columns - 36, 20)), "bold"))]
    lines[0] += ((f"   {cut(dialogue.aside, 30)}", "dim"),)
    style = "yellow" if dialogue.message else "dim"
    hint = wrap(dialogue.hint, max(columns - 5, 20), max_lines=2, placeholder=" …")
    lines += [((f"    {text}", style),) for text in hint]
    lines.append(((f"    {dialogue.prompt} ", ""), (f"{typed}", "bold"), ("▏", "cyan")))
    return lines
