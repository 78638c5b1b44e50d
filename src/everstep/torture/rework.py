"""What starts over or changes, written a second time: generations, revisions, compensations, tasks made by tasks.

Standard library only, like all of the judge.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from everstep.torture.history import Event, Violation
from everstep.torture.state import State


def superseded(data: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    """The paths whose outcome a `task.reopened` takes away; of a list in both lines, completed items stand."""
    kept = frozenset(data.get("kept") or ())
    for path in data.get("superseded") or ():
        yield path
        for name, step in known.items():
            if name.startswith(f"{path}[") and not (path in kept and step.status == "completed"):
                yield name


def revised(plan: Mapping[str, Any], diff: Any) -> dict[str, Any]:  # noqa: ANN401 -- any JSON
    """A plan after the changes that a `plan.revised` tells."""
    steps, final = list(plan.get("steps") or ()), list(plan.get("finally") or ())
    for change in diff or ():
        step = change.get("step")
        if step is None:
            continue
        if change.get("op") == "append":
            names = [one["id"] for one in steps]
            steps.insert(names.index(change["after"]) + 1 if change.get("after") in names else len(steps), step)
            continue
        steps = [step if one["id"] == change["id"] else one for one in steps]
        final = [step if one["id"] == change["id"] else one for one in final]
    return {**plan, "steps": steps, "finally": final}


def check_compensations(journals: Mapping[str, list[Event]]) -> Iterator[Violation]:
    """C10: of all tasks that were told to take one outcome back, at most one did."""
    for task, events in journals.items():
        takers: dict[str, list[tuple[str, str]]] = {}
        for event in events:
            if event.type == "task.reopened":
                for path in event.data.get("superseded") or ():
                    takers.pop(path, None)
            changes = event.data.get("changes") or {} if event.type == "task.updated" else {}
            undone = changes.get("undone") or {}
            for path, taker in (undone.get("steps") or {}).items():
                takers.setdefault(path, []).append((undone["by"], taker))
                done = [by for by, step in takers[path] if _completed(journals.get(by, []), step)]
                if len(done) > 1:
                    yield Violation("C10", task, event.seq, f"{path} is taken back by {' and by '.join(done)}")


def _completed(events: list[Event], step: str) -> bool:
    return any(event.type == "step.completed" and event.step == step for event in events)


def check_children(journals: Mapping[str, list[Event]]) -> Iterator[Violation]:
    """C1: a task that a step waits for is there, and belongs to that step alone."""
    for task, events in journals.items():
        for event in events:
            on = event.data.get("waiting_on") or {} if event.type == "step.waiting" else {}
            if on.get("kind") != "child":
                continue
            child = journals.get(str(on.get("detail")))
            parent = (child[0].data.get("parent") or {}) if child else None
            if parent is None or (parent.get("task"), parent.get("step")) != (task, event.step):
                yield Violation("C1", task, event.seq, f"step {event.step} waits for {on.get('detail')}, not its child")


def left_bytes(state: State, event: Event) -> None:
    """Bytes are left by a call that is still open, and named by what they are."""
    step, number = state.steps.get(event.step or ""), event.data.get("attempt")
    if step is None or step.open is None or step.open.number != number:
        state.blame("C5", event.seq, f"attempt {number} of step {event.step} left bytes, but is not open")
    if not str(event.data.get("digest")).startswith("sha256:"):
        state.blame("C5", event.seq, "an artifact without a digest")
