"""Signals on their way to the steps that wait for them.

A signal is durable before its sender is answered, and each step it is meant for completes by one guarded write in the
sender's name. If a process dies in between, the step's next walk finds the signal and writes the same.
"""

from everstep.domain.commands import Drafts
from everstep.domain.errors import NotFound, Unavailable
from everstep.domain.events import Draft, StepCompleted, Who
from everstep.domain.ids import Instant, PauseId, StepPath, TaskId
from everstep.domain.record import record
from everstep.domain.signal import Listener, Signal
from everstep.domain.states import EVENT
from everstep.domain.task import TaskState
from everstep.engine import control
from everstep.engine.kit import Kit


@record
class Sent:
    """A signal is durable: whether it came for the first time, who was to hear it, and how many have."""

    new: bool
    tasks: tuple[TaskId, ...]
    delivered: int


async def send(signal: Signal, kit: Kit) -> Sent:
    """Keep it, and end every wait for it; nobody waits: it is kept for the first who will."""
    kept = await kit.store.signals.keep(signal, _since(kit))
    kit.fault("signal.tell.before")
    heard = [await _hear(listener, signal, kit) for listener in kept.listeners]
    kit.fault("signal.tell.after")
    tasks = tuple(listener.task for listener in kept.listeners)
    return Sent(new=kept.new, tasks=tasks, delivered=sum(heard) if kept.new else kept.heard)


class Ears:
    """The steps of one held task that wait for a signal, as the store knows them."""

    __slots__ = ("_kit", "open")

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self.open: dict[StepPath, Listener] = {}

    async def listen(self, state: TaskState, *, again: bool = False) -> bool:
        """Who begins to wait, or looks again, hears what has come; who waits no longer leaves. Whether one heard."""
        signals, heard = self._kit.store.signals, False
        for path in [path for path in self.open if path not in state.listening]:
            await signals.leave(self.open.pop(path))
        for path in state.listening:
            if again or path not in self.open:
                listener = self.open[path] = _listener(state, path)
                signal = await signals.listen(listener, _since(self._kit))
                heard = (signal is not None and await _hear(listener, signal, self._kit)) or heard
        return heard


async def _hear(listener: Listener, signal: Signal, kit: Kit) -> bool:
    """Write down that it came; false if the step waits no longer, and then somebody else may have it."""
    output = kit.codec.seal(signal.output, untrusted=True)
    written = False

    def decide(state: TaskState) -> tuple[Drafts, PauseId | None]:
        nonlocal written
        step = state.steps.get(listener.step)
        written = listener.step in state.listening and step is not None and step.attempts == listener.attempt
        if not written or step is None or step.attempt is None:
            return (), None
        body = StepCompleted(
            attempt=step.attempt.number,
            output=output,
            summary=None,
            via="signal",
            tool_used=step.attempt.tool,
            duration_s=(kit.clock.now() - (step.started_at or kit.clock.now())) / 1000,
        )
        return (Draft(body=body, step=listener.step),), None

    try:
        await control.command(listener.task, Who(owner=signal.owner, actor=signal.actor), kit, decide)
    except NotFound:
        written = False
    except Unavailable:  # it loses every race: the task's own walk takes its turn
        return False
    await (kit.store.signals.heard(listener) if written else kit.store.signals.leave(listener))
    return written


def _listener(state: TaskState, path: StepPath) -> Listener:
    step = state.steps[path]
    assert step.wait is not None and step.wait.kind == EVENT
    key = step.wait.ref
    return Listener(
        task=state.id,
        step=path,
        attempt=step.attempts,
        owner=state.owner,
        event=step.wait.detail,
        key=state.id if key is None else key,
        any_key=key is None,
    )


def _since(kit: Kit) -> Instant:
    """What came earlier counts for nobody."""
    return Instant(kit.clock.now() - kit.limits.signal_keep_ms)
