"""A small model of one task: what the specification promises, in plain Python, without a line of the engine's.

The plan has two chains: `a1`, then `a2` whatever became of it; and `b1`, then `b2`, which needs its result.
"""

from dataclasses import dataclass, field
from typing import Final

STEPS: Final = ("a1", "a2", "b1", "b2")
RETRIES: Final = 1
ENDED: Final = frozenset({"completed", "failed", "skipped"})
TERMINAL: Final = frozenset({"completed", "failed", "cancelled"})
REPEATABLE: Final = frozenset({"pure", "idempotent"})
SHOWN: Final = {"calling": "running", "retry_wait": "running", "ready": "running"}
"""How the model's finer states are shown; the others are shown as they are."""


@dataclass
class Step:
    """One step: what the plan says of it, and where it stands."""

    on_error: str
    effect: str
    gated: bool = False
    """Somebody has to allow its call."""
    granted: bool = False
    at: str = "pending"
    why: str = ""
    """Of a pause: its type; of a skip: its reason."""
    retries: int = 0
    tries: list[int] = field(default_factory=lambda: [0])
    """Which logical try each call belonged to; the last one is the try of the next call."""
    output: object = None

    @property
    def shown(self) -> str:
        return SHOWN.get(self.at, self.at)

    @property
    def calls(self) -> int:
        return len(self.tries) - 1

    def call(self) -> None:
        """A grant carries a call and its repeats by the engine itself."""
        if self.gated and not self.granted:
            self.pause("approvalRequired")
            return
        self.at = "calling"
        self.tries.append(self.tries[-1])

    def new_try(self) -> None:
        self.tries[-1] += 1

    def pause(self, why: str) -> None:
        self.at, self.why = "paused", why

    def anew(self) -> None:
        """Somebody wants it done again: a new try, a new question."""
        if self.calls:
            self.new_try()
        self.retries, self.granted = 0, False

    def skip(self, why: str) -> None:
        self.at, self.why = "skipped", why


@dataclass
class Model:
    """The task. Every method is one thing that can happen to it."""

    steps: dict[str, Step]
    ended: str | None = None
    failing: bool = False
    asked: bool = False
    """A pause that somebody asked for is open."""
    lifted: bool = False
    """It was lifted before it took effect: calls in flight end first, then all goes on."""

    @property
    def in_flight(self) -> list[str]:
        return [name for name, step in self.steps.items() if step.at == "calling"]

    @property
    def questions(self) -> list[str]:
        return [name for name, step in self.steps.items() if step.at == "paused"]

    @property
    def status(self) -> str:
        if self.ended is not None:
            return self.ended
        if self.asked or self.lifted:
            return "pausing" if self.in_flight else "paused"
        if self.in_flight or any(step.at == "retry_wait" for step in self.steps.values()):
            return "running"
        return "paused"

    def begin(self) -> None:
        self._go_on("queued")

    # --- what the world does ---

    def finish(self, name: str, how: str, value: object = None) -> None:
        """A call in flight ends."""
        before = self.status
        step = self.steps[name]
        if how == "ok":
            step.at, step.output = "completed", value
        elif how == "unknown" and step.effect not in REPEATABLE:
            step.pause("uncertainOutcome")
        elif how in ("none", "unknown") and step.retries < RETRIES:
            step.at = "retry_wait"
            step.retries += 1
            if how == "none":
                step.new_try()
        else:
            self._give_up(step)
        self._go_on(before)

    def time_passes(self) -> None:
        """Long enough for every retry to be due."""
        before = self.status
        for step in self.steps.values():
            if step.at == "retry_wait":
                step.at = "ready"
        self._go_on(before)

    def crash(self) -> None:
        """The engine dies and is there again."""
        before = self.status
        for name in self.in_flight:
            step = self.steps[name]
            if step.effect in REPEATABLE:
                step.at = "ready"
            else:
                step.pause("uncertainOutcome")
        self.lifted = False
        self._go_on(before)

    # --- what people do; False means: refused, and nothing has changed ---

    def pause(self) -> bool:
        if self.ended is not None:
            return False
        self.asked, self.lifted = True, False
        return True

    def resume(self) -> bool:
        if self.ended is not None or (not self.asked and self.status == "paused"):
            return False
        before = self.status
        if self.asked:
            self.asked, self.lifted = False, bool(self.in_flight)
        self._go_on(before)
        return True

    def cancel(self) -> bool:
        if self.ended in ("completed", "failed"):
            return False
        self._end("cancelled", "task_cancelled")
        return True

    def answer(self, name: str, given: str, value: object = None) -> None:
        before = self.status
        step = self.steps[name]
        if given in ("happened", "supply_output"):
            step.at, step.output = "completed", value
        elif given == "skip":
            step.skip("requested")
        elif given == "fail":
            self._fail(step)
        elif given == "reject":
            self._give_up(step)
        else:
            step.at = "ready"
            if given == "retry":
                step.new_try()
                step.retries, step.granted = 0, False
            elif given == "approve":
                step.granted = True
        self._go_on(before)

    def leave_out(self, name: str) -> bool:
        """A patch skips a step that has not begun, or asks."""
        step = self.steps[name]
        if self.ended is not None or step.at not in ("pending", "paused"):
            return False
        before = self.status
        step.skip("requested")
        self._go_on(before)
        return True

    def retry(self, name: str) -> bool:
        """From a step on, with all that waits for it, and all that fell with the task."""
        if self.ended not in ("completed", "failed"):
            return False
        again = {name, *(n for n, step in self.steps.items() if self._fell(step))}
        again |= {then for first, then in (("a1", "a2"), ("b1", "b2")) if first in again}
        for one in again:
            step = self.steps[one]
            step.at, step.why, step.output = "pending", "", None
            step.anew()
        self.ended, self.failing, self.asked, self.lifted = None, False, False, False
        self._go_on("queued")
        return True

    @staticmethod
    def _fell(step: Step) -> bool:
        """Skipped with the task, or the step that made it fail."""
        return step.why in ("task_failed", "task_cancelled") or (step.at == "failed" and step.on_error != "continue")

    # --- what follows ---

    def _go_on(self, before: str) -> None:
        """Everything that follows by itself; a task that stood still for somebody goes on only when it may."""
        if self.ended is not None or (self.lifted and self.in_flight):
            return
        self.lifted = False
        stays = self.asked and before == "paused"
        if self.failing and not self.in_flight and not stays:
            self._end("failed", "task_failed")
        elif not self.asked and not self.failing:
            self._start()

    def _start(self) -> None:
        for name, step in self.steps.items():
            if step.at == "ready" or (step.at == "pending" and self._may_begin(name)):
                step.call()
        if all(step.at in ENDED for step in self.steps.values()):
            self.ended = "completed"

    def _may_begin(self, name: str) -> bool:
        before = self.steps.get({"a2": "a1", "b2": "b1"}.get(name, ""))
        if before is None:
            return True
        if before.at not in ENDED:
            return False
        if name == "a2" or before.at == "completed":
            return True
        step = self.steps[name]
        if before.why == "requested":
            step.pause("unresolvedDependency")
        else:
            step.skip("upstream")
        return False

    def _give_up(self, step: Step) -> None:
        if step.on_error == "pause":
            step.pause("toolError")
        else:
            self._fail(step)

    def _fail(self, step: Step) -> None:
        step.at, step.why = "failed", ""
        self.failing = self.failing or step.on_error != "continue"

    def _end(self, status: str, why: str) -> None:
        if self.ended is not None:
            return
        for step in self.steps.values():
            if step.at not in ENDED:
                step.skip(why)
        self.ended = status
