"""Who shows a followed task: lines for logs, frames for programs. The live one is `progress`, loaded when it draws."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from everstep.doors.cli.render import Line, flat, header, plain_line, restored
from everstep.doors.cli.session import Look, Session
from everstep.doors.cli.view import TaskView
from everstep.doors.cli.words import short, stamp

Json: TypeAlias = dict[str, Any]

STILL_RUNNING_S: Final = 30.0
_NEEDS_SOMEONE: Final = frozenset({"pause.opened", "pause.answered", "pause.expiring", "pause.expired"})
_PASSED_ON: Final = frozenset({"event", "tick", "output", "notice"})


class Screen(Protocol):
    """What following a task can show."""

    def begin(self, view: TaskView, *, taken_up: bool) -> None:
        """The task as it stands; `taken_up`: somebody worked on it before."""

    def frame(self, frame: Json) -> None:
        """A frame that the view has taken."""

    def ask(self, lines: Sequence[Line]) -> None:
        """What is being asked below the progress; no lines: nothing."""

    def remark(self, line: Line) -> None:
        """A remark about the task, kept above the progress."""

    def paint(self) -> None:
        """A moment has passed."""

    def close(self) -> None:
        """Nothing more comes."""


def screen_of(session: Session) -> Screen:
    """The screen that fits this session."""
    match session.look:
        case Look.JSON:
            return JsonScreen(session)
        case Look.PLAIN:
            return PlainScreen(session)
        case Look.LIVE:
            from everstep.doors.cli.progress import LiveScreen

            return LiveScreen(session)


class PlainScreen:
    """One line per event; nothing moves."""

    def __init__(self, session: Session, now: Callable[[], float] = time.monotonic) -> None:
        self._session = session
        self._now = now
        self._last = now()
        self._view: TaskView | None = None

    def begin(self, view: TaskView, *, taken_up: bool) -> None:
        self._view = view
        self._session.say(flat(header(view)))
        if taken_up:
            for line in restored(view):
                self._session.say(flat(line))

    def frame(self, frame: Json) -> None:
        if frame.get("type") == "event" and self._wanted(frame["event"]["type"]):
            self._last = self._now()
            self._session.warn(plain_line(frame["event"]))

    def _wanted(self, kind: str) -> bool:
        return not self._session.quiet or kind in _NEEDS_SOMEONE

    def ask(self, lines: Sequence[Line]) -> None:
        pass

    def remark(self, line: Line) -> None:
        self._session.say(flat(line))

    def paint(self) -> None:
        view = self._view
        if view is None or self._session.quiet or self._now() - self._last < STILL_RUNNING_S:
            return
        self._last = self._now()
        names = ",".join(step.id for step in view.running) or "-"
        word = "running" if view.running else view.status
        self._session.warn(
            f"{stamp(None)} {short(view.id)} still {word} {names} {view.done} of {len(view.steps)} steps ended"
        )

    def close(self) -> None:
        pass


class JsonScreen:
    """Frames as they came, one per line."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def begin(self, view: TaskView, *, taken_up: bool) -> None:
        pass

    def frame(self, frame: Json) -> None:
        if frame.get("type") in _PASSED_ON:
            self._session.result_json(frame)

    def ask(self, lines: Sequence[Line]) -> None:
        pass

    def remark(self, line: Line) -> None:
        pass

    def paint(self) -> None:
        pass

    def close(self) -> None:
        pass
