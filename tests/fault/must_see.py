"""What a long suite must have seen, or it has proved nothing: counted where it happens, or read from the journal.

`proof.toml` says which counts of which suites stand for what (`[seen]`); the report of `make torture` fails for a zero.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from everstep.errors import Unavailable
from everstep.ports.store import Committed, Stale
from everstep.torture.history import Event, Journal


class Unheard(Unavailable):
    """It was written, and whoever wrote it is told that nobody knows."""


def listen(store: Any, seen: Counter[str]) -> None:
    """Count what becomes of writes: too late, by a loser, refused for a pause, lost, or made without an answer."""
    commit_steps, sweep = store.commit_steps, store.sweep

    async def committing(commits: Sequence[Any]) -> Sequence[Any]:
        try:
            answers: Sequence[Any] = await commit_steps(commits)
        except Unavailable as error:
            seen["commit_unheard" if isinstance(error, Unheard) else "commit_refused"] += 1
            raise
        for answer in answers:
            seen["late_write"] += isinstance(answer, Stale)
            seen["paused_intent"] += isinstance(answer, Committed) and len(answer.refused)
        return answers

    async def sweeping(sweeps: Sequence[Any]) -> Sequence[Any]:
        answers: Sequence[Any] = await sweep(sweeps)
        seen["lost_sweep"] += sum(isinstance(answer, Stale) for answer in answers)
        return answers

    store.commit_steps, store.sweep = committing, sweeping


def told(journal: Journal) -> Counter[str]:
    """How the stories went: how tasks and calls ended, uncertain outcomes, grants that no longer fitted."""
    seen: Counter[str] = Counter()
    for events in journal.events.values():
        seen += Counter(event.type for event in events)
        seen["void_grant"] += void_grants(events)
        for event in events:
            seen["uncertain"] += event.type == "pause.opened" and kind_of(event) == "uncertainOutcome"
    return seen


def kind_of(opened: Event) -> str:
    """Of a pause."""
    return str(opened.data["reason"]["type"])


def void_grants(events: Sequence[Event]) -> int:
    """How often the same was asked again though it had been allowed, and nobody had made use of that."""
    asked: dict[str, str | None] = {}
    unused: set[str | None] = set()
    void = 0
    for event in events:
        match event.type:
            case "pause.opened" if event.data.get("call"):
                void += event.step in unused
                unused.discard(event.step)
                asked[event.data["id"]] = event.step
            case "pause.answered" if event.data["answer"] == "approve" and event.data["pause"] in asked:
                unused.add(asked[event.data["pause"]])
            case "attempt.started":
                unused.discard(event.step)
            case _:
                pass
    return void
