"""A task as somebody who follows it sees it: the fold of its frames. Pure; drawn by `render` and `progress`.

It begins with a Task (a `snapshot` frame, or what a request answered) and takes every `event` and `tick` after it.
Types it does not know change nothing but `seq`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from everstep.doors.cli.words import instant, payload_glance, safe, waits_for

Json: TypeAlias = dict[str, Any]

TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})
ENDED: Final = frozenset({"completed", "failed", "skipped"})


@dataclass(slots=True)
class StepView:
    """One step of the plan."""

    id: str
    title: str
    tool: str | None = None
    effect: str | None = None
    status: str = "pending"
    phase: str | None = None
    attempt: int = 0
    started_at: float | None = None
    duration_s: float | None = None
    summary: str = ""
    note: str = ""
    error: Json | None = None
    retry: Json | None = None
    skip: str = ""
    items: int | None = None
    items_done: int = 0
    items_failed: int = 0
    via: str | None = None

    @property
    def ended(self) -> bool:
        """Whether it has its outcome."""
        return self.status in ENDED


@dataclass(slots=True)
class TaskView:
    """One task."""

    id: str
    title: str
    plan: str = ""
    status: str = "queued"
    seq: int = 0
    steps: dict[str, StepView] = field(default_factory=dict)
    pauses: dict[str, Json] = field(default_factory=dict)
    outcome: str | None = None
    outputs: Json | None = None
    issues: list[Json] = field(default_factory=list)
    error: Json | None = None
    estimate: Json | None = None
    fraction: float = 0.0
    created_at: float | None = None
    duration_s: float | None = None
    last_step: str | None = None
    """The step that ended last."""

    @property
    def terminal(self) -> bool:
        """Whether it ended."""
        return self.status in TERMINAL

    @property
    def done(self) -> int:
        """Steps that have ended."""
        return sum(step.ended for step in self.steps.values())

    @property
    def running(self) -> list[StepView]:
        """Steps under way."""
        return [step for step in self.steps.values() if step.status == "running"]

    def absorb(self, frame: Json) -> None:
        """Take one frame."""
        match frame.get("type"):
            case "snapshot":
                self._take(frame["task"])
            case "event":
                self._event(frame["event"])
            case "tick":
                self._tick(frame)
            case _:
                pass

    @classmethod
    def of(cls, task: Json) -> "TaskView":
        """A task as a request answered it."""
        view = cls(id=task["id"], title=safe(task.get("title") or task["id"]))
        view._take(task)
        return view

    def _take(self, task: Json) -> None:
        self.title = safe(task.get("title") or self.id)
        self.plan = (task.get("plan") or {}).get("name") or ""
        self.status = task["status"]
        self.seq = task.get("seq") or 0
        self.outcome, self.error = task.get("outcome"), task.get("error")
        self.outputs = task.get("outputs")
        self.issues = task.get("issues") or []
        self.estimate = task.get("estimate")
        self.fraction = (task.get("progress") or {}).get("fraction") or 0.0
        self.created_at = instant(task.get("created_at"))
        started, ended = instant(task.get("started_at")), instant(task.get("ended_at"))
        self.duration_s = ended - started if started is not None and ended is not None else None
        pause = task.get("pause")
        self.pauses = {pause["id"]: pause} if pause else {}
        for step in task.get("steps") or []:
            if "[" not in step["id"]:
                self.steps[step["id"]] = step_of(step)

    def _event(self, event: Json) -> None:
        if event["seq"] <= self.seq:
            return
        self.seq = event["seq"]
        path = event.get("step")
        change = _CHANGES.get(event["type"])
        if change is None:
            return
        if path is not None and path.endswith("]"):
            self._item(event, path)
        elif path is not None:
            step = self.steps.setdefault(path, StepView(id=path, title=path))
            change(self, step, event)
        else:
            change(self, StepView(id="", title=""), event)

    def _item(self, event: Json, path: str) -> None:
        """An item of a `for_each` shows in its step."""
        step = self.steps.setdefault(path.partition("[")[0], StepView(id=path, title=path))
        match event["type"]:
            case "step.completed" | "step.skipped":
                step.items_done += 1
            case "step.failed":
                step.items_done += 1
                step.items_failed += 1
            case "pause.opened" | "pause.answered" | "pause.expired" | "pause.withdrawn":
                _CHANGES[event["type"]](self, step, event)
            case "attempt.started":
                step.status, step.phase = "running", "executing"
            case _:
                pass

    def _tick(self, frame: Json) -> None:
        self.estimate = frame.get("estimate") or self.estimate
        self.fraction = max(self.fraction, (frame.get("progress") or {}).get("fraction") or 0.0)
        for tick in frame.get("steps") or []:
            step = self.steps.get(tick["id"].partition("[")[0])
            if step is not None and tick.get("note"):
                step.note = safe(tick["note"])


def step_of(step: Json) -> StepView:
    """A Step as a request answered it."""
    counts = step.get("counts") or {}
    waiting = step.get("waiting_on") if step.get("phase") == "waiting_slot" else None
    return StepView(
        id=step["id"],
        title=safe(step.get("title") or step["id"]),
        tool=step.get("tool"),
        effect=step.get("effect"),
        status=step["status"],
        phase=step.get("phase"),
        attempt=len(step.get("attempts") or ()),
        started_at=instant(step.get("started_at")),
        duration_s=step.get("duration_s"),
        summary=safe(step.get("summary") or "") or payload_glance(step.get("output")),
        error=step.get("error"),
        skip=(step.get("skip") or {}).get("reason") or "",
        items=counts.get("total"),
        items_done=sum(counts.get(key) or 0 for key in ("completed", "failed", "skipped")),
        items_failed=counts.get("failed") or 0,
        via=step.get("via"),
        note=waits_for(waiting) if waiting else "",
    )


Change: TypeAlias = Callable[[TaskView, StepView, Json], None]


def _became(status: str) -> Change:
    def change(view: TaskView, _step: StepView, _event: Json) -> None:
        view.status = status

    return change


def _ended(view: TaskView, _step: StepView, event: Json) -> None:
    data = event["data"]
    view.status = event["type"].removeprefix("task.")
    view.duration_s = data.get("duration_s")
    view.outcome = data.get("outcome")
    outputs = data.get("outputs") or {}
    view.outputs = outputs.get("value")
    view.issues = data.get("issues") or []
    view.error = data.get("error")
    view.pauses.clear()
    for path in data.get("skipped") or ():
        if (step := view.steps.get(path)) is not None and not step.ended:
            step.status, step.skip = "skipped", f"task_{view.status}"


def _step_started(_view: TaskView, step: StepView, event: Json) -> None:
    data = event["data"]
    step.status, step.phase = "running", "validating"
    step.started_at = step.started_at or instant(event["at"])
    step.title = safe(data.get("title") or step.title)
    items = (data.get("items") or {}).get("value")
    if isinstance(items, list):
        step.items = len(items)


def _step_waiting(_view: TaskView, step: StepView, event: Json) -> None:
    step.status, step.phase = "running", "waiting_slot"
    step.note = waits_for(event["data"]["waiting_on"])


def _attempt_started(_view: TaskView, step: StepView, event: Json) -> None:
    data = event["data"]
    step.status, step.phase, step.note = "running", "executing", ""
    step.attempt, step.tool, step.effect = data["attempt"], data["tool"], data["effect"]
    step.retry = None
    step.started_at = step.started_at or instant(event["at"])


def _retry(_view: TaskView, step: StepView, event: Json) -> None:
    data = event["data"]
    step.phase, step.attempt = "retry_wait", data["attempt"]
    step.error, step.retry = data["error"], data.get("retry")


def _completed(view: TaskView, step: StepView, event: Json) -> None:
    data = event["data"]
    step.status, step.phase, step.error = "completed", "done", None
    step.duration_s, step.via = _length(step, event), data.get("via")
    step.summary = safe(data.get("summary") or "") or payload_glance(data.get("output"))
    view.last_step = step.id


def _failed(view: TaskView, step: StepView, event: Json) -> None:
    step.status, step.phase, step.error = "failed", "done", event["data"]["error"]
    step.duration_s = _length(step, event)
    view.last_step = step.id


def _skipped(view: TaskView, step: StepView, event: Json) -> None:
    data = event["data"]
    upstream = data.get("upstream")
    step.status, step.phase = "skipped", "done"
    step.skip = f"{data['reason']} {upstream}" if upstream else data["reason"]
    view.last_step = step.id


def _length(step: StepView, event: Json) -> float | None:
    """From the first attempt to the outcome, retries and waits included."""
    at = instant(event["at"])
    if step.started_at is not None and at is not None:
        return max(at - step.started_at, 0.0)
    length = event["data"].get("duration_s")
    return length if isinstance(length, float | int) else None


def _pause_opened(view: TaskView, step: StepView, event: Json) -> None:
    view.pauses[event["data"]["id"]] = event["data"]
    if step.id:
        step.status = "paused"


def _pause_closed(view: TaskView, step: StepView, event: Json) -> None:
    view.pauses.pop(event["data"]["pause"], None)
    if step.id and step.status == "paused":
        step.status = "running"


def _reopened(view: TaskView, _step: StepView, event: Json) -> None:
    """A new generation: what is done anew looks as if it had never begun."""
    view.status, view.outcome, view.outputs, view.error = "queued", None, None, None
    view.issues, view.duration_s, view.fraction = [], None, 0.0
    for path in event["data"].get("superseded") or ():
        if (step := view.steps.get(path)) is not None:
            view.steps[path] = StepView(id=step.id, title=step.title, tool=step.tool, effect=step.effect)


def _revised(view: TaskView, _step: StepView, event: Json) -> None:
    """Steps that were added stand where the plan has them."""
    for change in event["data"].get("diff") or ():
        if change["op"] != "append" or change["id"] in view.steps:
            continue
        new = StepView(id=change["id"], title=change["id"], tool=(change.get("step") or {}).get("tool"))
        names = [*view.steps]
        at = names.index(change["after"]) + 1 if change.get("after") in names else len(names)
        view.steps = {name: new if name == new.id else view.steps[name] for name in [*names[:at], new.id, *names[at:]]}


def _recovered(view: TaskView, _step: StepView, event: Json) -> None:
    view.status = "stalled"
    for lost in event["data"].get("steps") or ():
        if (step := view.steps.get(lost["step"])) is not None:
            step.note = f"interrupted, {DECISIONS.get(lost['decision'], lost['decision'])}"


DECISIONS: Final = {"call_again": "called again", "probe": "looked up", "ask": "asks you", "fail": "fails"}
"""What recovery does with a call that was interrupted."""

_CHANGES: Final[dict[str, Change]] = {
    "task.started": _became("running"),
    "task.pausing": _became("pausing"),
    "task.paused": _became("paused"),
    "task.resumed": lambda view, _step, event: _became(event["data"]["to"])(view, _step, event),
    "task.cancelling": _became("cancelling"),
    "task.recovered": _recovered,
    "task.completed": _ended,
    "task.failed": _ended,
    "task.cancelled": _ended,
    "task.reopened": _reopened,
    "plan.revised": _revised,
    "step.started": _step_started,
    "step.waiting": _step_waiting,
    "attempt.started": _attempt_started,
    "step.retry_scheduled": _retry,
    "step.completed": _completed,
    "step.failed": _failed,
    "step.skipped": _skipped,
    "pause.opened": _pause_opened,
    "pause.answered": _pause_closed,
    "pause.expired": _pause_closed,
    "pause.withdrawn": _pause_closed,
}
