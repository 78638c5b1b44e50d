"""Lines of a terminal, made from a `TaskView` or from one event. Pure: no clock, no terminal, no colours.

A line is a tuple of spans (text, style); `flat` joins them where nobody sees styles.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from everstep.doors.cli.view import StepView, TaskView
from everstep.doors.cli.words import (
    about,
    cells,
    cut,
    glance,
    instant,
    listed,
    pad,
    payload_glance,
    plural,
    safe,
    seconds,
    short,
    stamp,
    waits_for,
)  # fmt: skip

Json: TypeAlias = dict[str, Any]
Span: TypeAlias = tuple[str, str]
Line: TypeAlias = tuple[Span, ...]

FOOTER_LINES: Final = 6
TITLE_COLUMNS: Final = 34
BAR: Final = 10

MARKS: Final = {
    "completed": ("ok", "green"),
    "failed": ("!!", "red"),
    "skipped": ("--", "dim"),
    "paused": ("||", "yellow"),
    "running": ("..", "cyan"),
    "pending": ("  ", "dim"),
    "cancelled": ("--", "dim"),
    "queued": ("..", "dim"),
    "pausing": ("..", "yellow"),
    "stalled": ("..", "yellow"),
    "cancelling": ("..", "dim"),
}
"""Every status as two characters that need no colour."""

SKIPS: Final = {
    "condition": "its condition is false",
    "goal_met": "the goal is met already",
    "task_failed": "the task failed before it",
    "task_cancelled": "the task was cancelled",
    "requested": "left out on request",
    "upstream": "a step it needs has no result",
}


def flat(line: Line) -> str:
    """A line without its styles."""
    return "".join(text for text, _ in line).rstrip()


def header(view: TaskView) -> Line:
    """What is being carried out."""
    return ((view.title, "bold"), ("   ", ""), (short(view.id), "dim"))


def restored(view: TaskView) -> list[Line]:
    """What is known from before, when a task is taken up again."""
    done = [step.id for step in view.steps.values() if step.status == "completed"]
    lost = [step for step in view.steps.values() if step.status == "running" and view.status == "stalled"]
    lines: list[Line] = []
    if done:
        text = f"{plural(len(done), 'step')} of {len(view.steps)} restored from the journal: {listed(done, 12)}"
        lines.append(((" == ", "cyan"), (text, "")))
    else:
        lines.append(((" == ", "cyan"), ("goes on with the task of before; no step had ended yet", "")))
    for step in lost:
        then = {"once": "nobody knows whether it happened", "verifiable": "looked up whether it happened"}
        text = f"{step.id} was interrupted: {then.get(step.effect or '', 'called again, which is harmless')}"
        lines.append(((" == ", "cyan"), (text, "")))
    return lines


def title_columns(view: TaskView, width: int) -> int:
    """How wide the titles may be."""
    longest = max((cells(step.title) for step in view.steps.values()), default=0)
    return max(min(longest, TITLE_COLUMNS, width // 2), 8)


def step_line(step: StepView, columns: int, width: int, now: float | None = None) -> Line:
    """One step: mark, title, time, what came of it."""
    mark, style = MARKS.get(step.status, ("  ", ""))
    length = step.duration_s
    if length is None and now is not None and step.started_at is not None:
        length = max(now - step.started_at, 0.0)
    told = cut(told_of(step, now), max(width - columns - 17, 10))
    tone = "red" if step.status == "failed" else "dim" if step.status == "skipped" else ""
    time = "" if step.status == "skipped" or length is None else seconds(length)
    return ((f" {mark} ", style), (pad(step.title, columns), tone), (f" {time:>7}  ", "dim"), (told, tone))


def told_of(step: StepView, now: float | None = None) -> str:
    """The last words of a step's line."""
    match step.status:
        case "failed":
            return safe((step.error or {}).get("message") or "failed")
        case "skipped":
            reason, _, upstream = step.skip.partition(" ")
            return f"needs {upstream}, which has no result" if upstream else SKIPS.get(reason, reason)
        case "running" if step.phase == "retry_wait":
            return _retrying(step, now)
        case "running" if step.items is not None:
            failed = f", {step.items_failed} failed" if step.items_failed else ""
            return f"{step.items_done} of {step.items}{failed}"
        case "running":
            return step.note
        case "completed" if step.via not in (None, "tool"):
            return f"{step.via}: {step.summary}" if step.summary else str(step.via)
        case _:
            return step.summary


def _retrying(step: StepView, now: float | None) -> str:
    retry, error = step.retry or {}, step.error or {}
    at = instant(retry.get("next_at"))
    when = "soon" if at is None or now is None else f"in {max(at - now, 0):.0f} s"
    count = f"try {step.attempt + 1} of {retry['max'] + 1} {when}" if retry.get("max") else f"again {when}"
    return f"{count}: {safe(error.get('message') or '')}"


def footer(view: TaskView, now: float, since: float, width: int) -> list[Line]:
    """What is under way, and how far it has come."""
    columns = title_columns(view, width)
    under_way = view.running
    lines = [step_line(step, columns, width, now) for step in under_way[: FOOTER_LINES - 4]]
    if len(under_way) > len(lines):
        lines.append(((f"    and {len(under_way) - len(lines)} more", "dim"),))
    return [*lines, progress_line(view, now - since, width)]


def progress_line(view: TaskView, elapsed_s: float, width: int) -> Line:
    """`4/5 ========--  what it waits for   1m04s`."""
    total = len(view.steps)
    share = max(view.fraction, view.done / total if total else 0.0)
    full = BAR if view.status == "completed" else min(int(share * BAR), BAR - 1)
    count = f" {view.done}/{total} "
    text, time = waiting_text(view), seconds(elapsed_s)
    room = max(width - len(count) - BAR - len(time) - 8, 8)
    return ((count, "bold"), ("=" * full + "-" * (BAR - full), "cyan"), (f"  {pad(text, room)}  ", ""), (time, "dim"))


def waiting_text(view: TaskView) -> str:
    """What the task is waiting for, in a few words."""
    if view.pauses:
        then = about(view.estimate) if view.estimate and view.estimate.get("p50") else ""
        return f"waiting for you, then {then}" if then else "waiting for you"
    match view.status:
        case "pausing":
            names = [step.id for step in view.running]
            return f"pausing after {listed(names)}" if names else "pausing"
        case "cancelling" | "stalled" | "queued" | "paused":
            return {"stalled": "recovering"}.get(view.status, view.status)
        case _:
            return about(view.estimate)


# --- how it ended ---


def last_line(view: TaskView) -> Line:
    """How the task stands, in one line."""
    took = f" in {seconds(view.duration_s)}" if view.duration_s is not None else ""
    match view.status:
        case "completed" if view.outcome == "partial" or view.issues:
            return ((f"completed with {plural(len(view.issues), 'issue')}", "yellow"), (took, ""))
        case "completed":
            return (("completed", "green"), (took, ""))
        case "failed":
            error = view.error or {}
            return (("failed", "red"), (f": {safe(error.get('message') or '')}   [{error.get('code')}]", ""))
        case "cancelled":
            return (("cancelled", "yellow"), (took, ""))
        case _:
            return ((view.status, "yellow"), (f"   {view.done} of {plural(len(view.steps), 'step')} ended", ""))


def issue_lines(view: TaskView) -> list[Line]:
    """What did not go as planned in a task that completed."""
    lines: list[Line] = []
    for issue in view.issues:
        error = issue.get("error") or {}
        reason = error.get("message") or SKIPS.get(issue.get("reason") or "", issue.get("reason") or "")
        lines.append((("  - ", "yellow"), (f"{issue.get('step') or 'task'} {issue.get('status')}: {safe(reason)}", "")))
    return lines


def output_lines(outputs: Json | None) -> list[str]:
    """`name: value` per output."""
    from everstep.doors.cli.words import output_text

    return [f"{name}: {output_text(value)}" for name, value in (outputs or {}).items()]


# --- one line per event ---


def plain_line(event: Json) -> str:
    """`TIME TASK TYPE STEP TEXT`."""
    step = event.get("step") or "-"
    return f"{stamp(event['at'])} {short(event['task'])} {event['type']} {step} {event_text(event)}".rstrip()


def event_text(event: Json) -> str:
    """An event in a few words."""
    data: Json = event["data"]
    match event["type"]:
        case "task.created":
            return safe(data.get("title") or "")
        case "task.started":
            return f"from {data.get('from')}, epoch {data.get('epoch')}"
        case "task.recovered":
            steps = [f"{one['step']}: {one['decision']}" for one in data.get("steps") or ()]
            return f"{data.get('reason')} {', '.join(steps)}"
        case "task.completed":
            return f"{data.get('outcome')} in {seconds(data.get('duration_s') or 0)}"
        case "task.pausing":
            return f"after {listed(list(data['waits_for']))}" if data.get("waits_for") else ""
        case "task.paused":
            return str(data.get("type"))
        case "task.resumed":
            return f"to {data.get('to')}"
        case "task.cancelled":
            return str(data.get("reason"))
        case "step.started":
            return safe(data.get("title") or "")
        case "step.waiting":
            return waits_for(data["waiting_on"])
        case "attempt.started":
            return f"{data['tool']} attempt {data['attempt']}"
        case "attempt.probed":
            return str(data.get("result"))
        case "step.completed":
            summary = safe(data.get("summary") or "") or payload_glance(data.get("output"))
            return f"{seconds(data.get('duration_s') or 0)} {summary}"
        case "step.skipped":
            upstream = data.get("upstream")
            return f"{data['reason']} {upstream}" if upstream else str(data["reason"])
        case "pause.opened":
            return f"{data['id']} {data['reason']['type']}: {safe(data['title'])}"
        case "pause.answered":
            return f"{data['pause']} {data['answer']} by {(event.get('actor') or {}).get('id')}"
        case "pause.expiring":
            return f"{data['pause']} then {data['on_timeout']}"
        case "pause.expired":
            return f"{data['pause']} nobody answered in time: {data['action']}"
        case "pause.withdrawn":
            return f"{data['pause']} {safe(data.get('why') or '')}"
        case _ if data.get("error"):
            return f"{safe(data['error'].get('message') or '')} [{data['error'].get('code')}]"
        case _:
            return glance(data)


def table(rows: Sequence[Sequence[str]], gap: int = 2) -> list[str]:
    """Columns as wide as their widest cell."""
    if not rows:
        return []
    widths = [max(cells(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [(" " * gap).join(pad(cell, wide) for cell, wide in zip(row, widths, strict=True)).rstrip() for row in rows]
