"""Where to strike by name: for every failpoint a small trial that is sure to come there.

A point that no trial of ours passes is listed with who strikes it instead; a test holds the lists against the code.
"""

from typing import Final

from everstep.torture.trial import Plot
from everstep.torture.workload import Workload

IN_A_CALL: Final = "call.execute.after=sigkill"

FIRST_LIFE: Final = (
    "migrate.apply.before", "migrate.apply.mid", "migrate.apply.after", "gate.scan.before", "gate.scan.after",
    "create.commit.before", "create.commit.after", "claim.commit.before", "claim.commit.after",
    "intent.commit.before", "intent.commit.after", "call.execute.before", "call.execute.after",
    "outcome.commit.before", "outcome.commit.after", "stop.release.before", "history.commit.before",
    "history.commit.after",
)  # fmt: skip
"""Passed by any task."""
AFTER_A_CRASH: Final = (
    "scan.page.before", "scan.page.after", "sweep.commit.before", "sweep.commit.after", "recover.probe.before",
    "recover.probe.after", "command.decide.after", "command.commit.before", "command.commit.after",
)  # fmt: skip
"""Passed when a `once` call was interrupted: recovery, and the answer to its question."""
AROUND_AN_APPROVAL: Final = (
    "command.decide.after", "command.commit.before", "command.commit.after", "intent.commit.before",
    "intent.commit.after:2",
)  # fmt: skip
"""Passed when a gated call is asked about, allowed and made."""
IN_SILENCE: Final = ("timer.expire.before", "timer.expire.after")
"""Passed when nobody answers in time."""
IN_A_LONG_CALL: Final = ("renew.commit.before", "renew.commit.after")
"""Passed when a call outlives a heartbeat."""
INSIDE_RECOVERY: Final = ("sweep.commit.before", "sweep.commit.after", "recover.probe.before", "scan.page.after")
"""One crash after the other, each inside the recovery from the one before."""
BY_THE_STORE: Final = (
    "artifact.write.before", "artifact.write.mid", "artifact.write.after", "backup.copy.before", "backup.copy.after",
    "checkpoint.truncate.before", "checkpoint.truncate.after", "rate.commit.before", "rate.commit.after",
    "halt.commit.before", "halt.commit.after",
)  # fmt: skip
"""Struck by the store's own suite: no task of ours comes there."""
BY_THE_STORY: Final = (
    "reopen.decide.before", "revise.decide.before", "fork.create.before", "fork.create.after",
    "undo.create.before", "undo.create.after",
)  # fmt: skip
"""Struck while tasks are retried, patched, forked and undone …"""
BY_ERRANDS: Final = (
    *(f"{area}.commit.{when}" for area in ("signal", "listen", "retention", "key", "handle", "breaker", "worker")
      for when in ("before", "after")),
    "pause.ask.before", "pause.ask.after", "resume.ask.before", "resume.ask.after", "cancel.ask.before",
    "cancel.ask.after", "answer.give.before", "answer.give.after", "signal.tell.before", "signal.tell.after",
    "stream.join.after",
)  # fmt: skip
"""Struck while somebody pauses, resumes, cancels, answers, signals, deletes, and hands out tokens."""
STORY: Final = "everstep.torture.story"
"""… by the program of this name."""
STORM: Final = "everstep.torture.storm"
"""The program that is killed at random while all commands come at once."""


def strikes(seed: int = 0) -> dict[str, tuple[Workload, Plot]]:
    """A trial per point, and one that dies again and again; each plots as many kills as it has failpoints."""
    once = Workload(steps=4, once_share=1.0, seed=seed)
    trials = {point: (Workload(steps=4, seed=seed), _plot(point)) for point in FIRST_LIFE}
    trials |= {point: (once, _plot(IN_A_CALL, point)) for point in AFTER_A_CRASH}
    trials |= {point: (Workload(steps=2, call_s=0.5, seed=seed), _plot(point)) for point in IN_A_LONG_CALL}
    gated = Workload(steps=4, once_share=0.5, approvals=0.5, seed=seed)
    trials |= {f"approval {point}": (gated, _plot(point)) for point in AROUND_AN_APPROVAL}
    silent = Workload(steps=2, once_share=0.0, approvals=1.0, silent=True, seed=seed)
    trials |= {point: (silent, _plot(point)) for point in IN_SILENCE}
    trials["inside recovery"] = (once, _plot(IN_A_CALL, *INSIDE_RECOVERY))
    return trials


def _plot(*points: str) -> Plot:
    return Plot(failpoints=tuple(point if "=" in point else f"{point}=sigkill" for point in points))
