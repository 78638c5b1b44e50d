"""What a running call may know and say: its `ctx`."""

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from everstep.domain.consequence import spec_of
from everstep.domain.detour import source_of
from everstep.domain.ids import Instant, StepPath
from everstep.domain.plan import LimitsSpec, attempt_limits
from everstep.domain.redact import RedactedStream
from everstep.domain.task import Intent, TaskState
from everstep.domain.usage import Measured, Meter, Usage
from everstep.engine.catalog import Entry
from everstep.engine.kit import Kit
from everstep.engine.lasting import LastingCall, StandStill
from everstep.engine.timing import attempt_ends
from everstep.ports.tool import Origin, ResourceExceeded

__all__ = ["CallContext", "StandStill", "limits_of"]


def limits_of(state: TaskState, path: StepPath) -> LimitsSpec | None:
    """What one attempt of a step may use."""
    return attempt_limits(state.plan, spec_of(state, path))


class CallContext(LastingCall):
    """The `ctx` of a running call. Made for every call, so it computes nothing before it is asked."""

    __slots__ = (
        "_meter",
        "_state",
        "_streamed",
        "answer",
        "limits",
        "timeout_ms",
    )

    def __init__(self, intent: Intent, entry: Entry, state: TaskState, kit: Kit) -> None:
        spec, step = spec_of(state, intent.step), state.steps[intent.step]
        super().__init__(intent, state.owner, kit)
        said = spec.timeout_ms or state.plan.defaults.timeout_ms or entry.spec.timeout_ms
        if intent.attempt.number > 1 or step.detour is not None or spec.retry is not None:
            said = attempt_ends(state, intent.step, kit, intent.attempt.started_at)
        self._state = state
        self._meter: Meter | None = None
        self._streamed: RedactedStream | None = None
        self.timeout_ms = said or kit.limits.step_timeout_ms
        self.limits = attempt_limits(state.plan, spec)
        self.answer = step.answer

    @property
    def workdir(self) -> Path:
        return Path(os.path.normpath(Path(self._kit.home) / self._state.workspace))

    @property
    def deadline(self) -> datetime:
        return datetime.fromtimestamp((self._intent.attempt.started_at + self.timeout_ms) / 1000, UTC)

    @property
    def origin(self) -> Origin:
        state, step = self._state, self._state.steps[self._intent.step]
        said = source_of(spec_of(state, self._intent.step), step.detour).arguments or {}
        given = step.arguments or {}
        written = {name: value for name, value in said.items() if name not in given}
        return Origin(trusted=state.vouches_for(self._intent.step), written=written)

    def now(self) -> Instant:
        return self._kit.clock.now()

    def remaining(self) -> float:
        return (self._intent.attempt.started_at + self.timeout_ms - self._kit.clock.now()) / 1000

    async def wait_cancelled(self) -> None:
        self._ending = self._ending or asyncio.Event()
        await self._ending.wait()

    def progress(self, fraction: float, text: str | None = None) -> None:
        self._kit.sink.progress(self._intent.task, self._intent.step, fraction, text)

    def stream(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"ctx.stream takes text, not {type(text).__name__}")
        if self._kit.catalog.redactor:
            self._streamed = self._streamed or self._kit.catalog.redactor.stream()
            text = self._streamed.feed(text)
        self._kit.sink.output(self._intent.task, self._intent.step, self._intent.attempt.number, text)

    def flush(self) -> None:
        """Show what was held back because it could have become a secret."""
        if self._streamed is not None:
            text = self._streamed.close()
            self._kit.sink.output(self._intent.task, self._intent.step, self._intent.attempt.number, text)

    def usage(
        self,
        cost: float | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        **counts: float | None,
    ) -> None:
        self._meter = self._meter or Meter()
        self._meter.add(cost, tokens_in, tokens_out, counts)
        most = None if self.limits is None else self.limits.cost
        if most is not None and self._meter.cost > most:
            what = f"the call has cost {self._meter.cost:g}, and may cost {most:g}"
            raise ResourceExceeded(what, limit="cost", used=self._meter.cost, max=most)

    def used(self) -> Usage | None:
        """What was reported; None if nothing was."""
        return None if self._meter is None else self._meter.read()

    @property
    def bounds(self) -> LimitsSpec | None:
        return self.limits

    @property
    def left(self) -> LimitsSpec:
        return self._state.budget.left()

    def measured(self, used: Measured) -> None:
        self._meter = self._meter or Meter()
        self._meter.measured = used

    def outlives(self) -> Callable[[], None]:
        return self._kit.passage.pools.outlives((self._intent.task, self._intent.step))

    def end(self) -> None:
        """The call should end: timed out, cancelled, or the engine stops."""
        self._ending = self._ending or asyncio.Event()
        self._ending.set()
