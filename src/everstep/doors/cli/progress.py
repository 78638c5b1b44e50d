"""The live screen: finished steps scroll away, a short footer stays. Drawn with rich, which is loaded here only.

No alternate screen, at most ten repaints a second; whatever tools print appears above the footer.
"""

import sys
import time
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from rich.console import Console
from rich.live import Live
from rich.text import Text

from everstep.doors.cli.render import (
    FOOTER_LINES,
    Line,
    event_text,
    footer,
    header,
    restored,
    step_line,
    title_columns,
)  # fmt: skip
from everstep.doors.cli.session import Session, width
from everstep.doors.cli.view import TaskView
from everstep.doors.cli.words import clock

Json: TypeAlias = dict[str, Any]

REPAINT_S: Final = 0.1
_ENDS: Final = frozenset({"step.completed", "step.failed", "step.skipped"})
_STYLES: Final = {"dim": "bright_black"}


class LiveScreen:
    """Progress for people."""

    def __init__(self, session: Session) -> None:
        self._session = session
        colored = session.colors(sys.stderr)
        self._console = Console(
            file=sys.stderr, highlight=False, no_color=not colored, force_terminal=True, width=width(), soft_wrap=True
        )
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._view: TaskView | None = None
        self._fresh: list[Line] = []
        self._asked: Sequence[Line] = ()
        self._since = time.time()
        self._painted = 0.0

    def begin(self, view: TaskView, *, taken_up: bool) -> None:
        self._view = view
        if self._session.quiet:
            return
        self._print((header(view), *(restored(view) if taken_up else ())))
        self._begin()

    def _begin(self) -> None:
        self._live.start()
        self._console.show_cursor(show=True)  # a killed process must not leave a terminal without one

    def frame(self, frame: Json) -> None:
        view = self._view
        if view is None or frame.get("type") != "event":
            return
        event = frame["event"]
        step = view.steps.get(event.get("step") or "")
        if event["type"] == "pause.opened" and event.get("step") and self._session.bell:
            sys.stderr.write("\a")
        if self._session.verbose:
            self._fresh += self._verbose_lines(event)
        if step is not None and event["type"] in _ENDS:
            self._fresh.append(step_line(step, title_columns(view, width()), width()))
        if view.terminal:
            for left in view.steps.values():
                if left.skip == f"task_{view.status}":
                    self._fresh.append(step_line(left, title_columns(view, width()), width()))

    def _verbose_lines(self, event: Json) -> list[Line]:
        if self._session.verbose == 1 and not event["type"].startswith(("attempt.", "step.retry")):
            return []
        text = f"    {clock(event['at'])} {event['seq']:>4} {event['type']} {event.get('step') or ''} "
        return [((text + event_text(event), "dim"),)]

    def ask(self, lines: Sequence[Line]) -> None:
        self._asked = lines
        self._painted = 0.0
        self.paint()

    def remark(self, line: Line) -> None:
        self._fresh.append(line)

    def paint(self) -> None:
        now = time.monotonic()
        if self._view is None or now - self._painted < REPAINT_S:
            return
        self._painted = now
        self._draw(self._view)

    def _draw(self, view: TaskView) -> None:
        fresh, self._fresh = self._fresh, []
        if self._session.quiet and not self._asked:
            return
        if not self._live.is_started:
            self._begin()
        *under_way, last = footer(view, time.time(), self._since, width())
        room = FOOTER_LINES - len(self._asked) - 1
        lines = (*under_way[: max(room, 0)], *self._asked, last)
        self._live.update(_joined(lines), refresh=True)
        if not self._session.quiet:
            self._print(fresh)

    def _print(self, lines: Sequence[Line]) -> None:
        if lines:
            self._console.print(_joined(lines), end="\n")

    def close(self) -> None:
        fresh, self._fresh = self._fresh, []
        if not self._session.quiet:
            self._print(fresh)
        if self._live.is_started:
            self._live.stop()


def _joined(lines: Sequence[Line]) -> Text:
    return Text("\n", end="").join(map(_text, lines))


def _text(line: Line) -> Text:
    text = Text(end="")
    for span, style in line:
        text.append(span, style=_STYLES.get(style, style))
    return text
