"""History: how long things took and how they ended, as the journal tells it. A pure function of events that ended.

Each row is one sketch. Rows of an hour tell how it went then (for figures and regressions); the *standing* row of a
tool is all of it at once, with what was long ago fading (for estimates).
"""

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from typing import Final

from everstep.domain.ids import Instant
from everstep.domain.record import hot_record, record
from everstep.domain.sketch import Sketch

STANDING: Final = 0
"""The bucket of a row that is of no hour."""
HOUR_MS: Final = 3_600_000
FADES_FROM: Final = 2_000
FADES_TO: Final = 1_000
"""What a standing row weighs at most, and then."""


class Kind(StrEnum):
    """What a row is about. Its name, and the outcomes there are, follow from it."""

    TOOL = "tool"
    """Calls of a tool: `succeeded`, `failed`, `timed_out`, `killed`, `abandoned`; `retry`: waits before one more."""
    PLAN = "plan"
    """Tasks of a plan from start to end: `success`, `partial`, `failed`, `cancelled`."""
    PHASE = "phase"
    """Waits: `queued` of a task; `awaiting_approval`, `awaiting_person` of a step, with the answer, or `expired`."""
    CALIBRATION = "calibration"
    """First estimates of a plan's tasks, held against their ends: `covered`, `under`, `over`; the time is the work."""


SUCCEEDED: Final = "succeeded"
RETRY: Final = "retry"
EXPIRED: Final = "expired"
"""Nobody answered in time."""


@hot_record
class HistoryKey:
    """What a row is about; `plan` and `step` are empty in standing rows."""

    owner: str
    kind: Kind
    name: str
    outcome: str = ""
    size: str = ""
    plan: str = ""
    step: str = ""

    def standing(self) -> "HistoryKey":
        """The same over all plans and steps."""
        return replace(self, plan="", step="")


@record
class HistoryRow:
    """One sketch; `bucket` counts hours since 1970."""

    key: HistoryKey
    bucket: int
    sketch: Sketch


def hour_of(at: Instant) -> int:
    """The bucket that an instant falls into."""
    return at // HOUR_MS


def grouped(observed: Iterable[tuple[HistoryKey, int, int, int]]) -> list[HistoryRow]:
    """Rows of (what, hour, milliseconds, how often): by the hour; and standing ones of tools."""
    rows: dict[tuple[HistoryKey, int], Sketch] = {}
    for key, hour, ms, count in observed:
        rows.setdefault((key, hour), Sketch()).add(ms, count)
        if key.kind is Kind.TOOL:
            rows.setdefault((key.standing(), STANDING), Sketch()).add(ms, count)
    return [HistoryRow(key=key, bucket=bucket, sketch=sketch) for (key, bucket), sketch in rows.items()]


def merged(kept: Sketch | None, more: HistoryRow) -> Sketch:
    """A row after more has been seen."""
    whole = Sketch()
    if kept is not None:
        whole.merge(kept)
    whole.merge(more.sketch)
    if more.bucket == STANDING:
        whole.fade(FADES_FROM, FADES_TO)
    return whole
