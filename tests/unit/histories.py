"""Small histories for the tests of rules: a plan in a few words, events by hand, states by folding them."""

from everstep.domain import events as e
from everstep.domain.fold import fold
from everstep.domain.ids import Digest, Epoch, Instant, Seq, StepPath, TaskId, WorkerId
from everstep.domain.plan import Effect, PlanSpec, StepSpec
from everstep.domain.task import TaskState
from everstep.domain.values import JsonValue, Sealed

TASK = TaskId("t_0")
WORKER = WorkerId("w_0")
HUMAN = e.Actor(kind=e.ActorKind.HUMAN, id="ana", via="cli")
START = Instant(1_000_000)


def sealed(value: JsonValue) -> Sealed:
    """A sealed value whose digest is its text: enough for rules that never look at it."""
    return Sealed(value, Digest(f"sha256:{value}"), len(str(value)))


def step(id: str, **keys: object) -> StepSpec:
    """A step of `some.tool`, with whatever keys the test is about."""
    usual: dict[str, object] = {"id": id, "tool": "some.tool", "arguments": {}, "bind": id}
    return StepSpec(**{**usual, **keys})  # type: ignore[arg-type]


def plan(*steps: StepSpec, **keys: object) -> PlanSpec:
    """A plan of these steps."""
    return PlanSpec(name="p", steps=steps, outputs={}, **keys)  # type: ignore[arg-type]


class History:
    """A journal that grows by hand; `state` is its fold."""

    def __init__(self, spec: PlanSpec) -> None:
        self.at = START
        created = e.TaskCreated(
            plan=spec,
            plan_digest=Digest("sha256:p"),
            trusted=True,
            key=None,
            title="p",
            inputs=sealed({}),
            labels={},
            priority=1,
            workspace="/w",
        )
        self.recorded = [self._record(created, None, 1)]
        self.state: TaskState = fold(None, "local", self.recorded[0])

    def _record(self, body: e.Body, path: str | None, seq: int) -> e.Recorded:
        where = None if path is None else StepPath(path)
        return e.Recorded(task=TASK, seq=Seq(seq), at=self.at, generation=1, actor=HUMAN, step=where, body=body)

    def say(self, body: e.Body, path: str | None = None, *, after_ms: int = 10) -> "History":
        """One more event, a little later."""
        self.at = Instant(self.at + after_ms)
        self.recorded.append(self._record(body, path, self.state.seq + 1))
        fold(self.state, "local", self.recorded[-1])
        return self

    def tell(self, drafts: tuple[e.Draft, ...]) -> "History":
        """Events that a rule decided."""
        for draft in drafts:
            self.say(draft.body, draft.step)
        return self

    def claimed(self, epoch: int = 1) -> "History":
        """A worker takes the task."""
        return self.say(e.TaskStarted(from_status=self.state.status, worker=WORKER, epoch=Epoch(epoch)))

    def called(self, path: str, effect: Effect = Effect.PURE, *, attempt: int | None = None) -> "History":
        """The intent of a call is durable."""
        known = self.state.steps.get(StepPath(path))
        number = attempt or (known.attempts if known else 0) + 1
        body = e.AttemptStarted(
            attempt=number,
            epoch=self.state.epoch,
            worker=WORKER,
            tool="some.tool",
            tool_version="1",
            effect=effect,
            idempotency_key=f"key-{path}",
            input=sealed({}),
        )
        return self.say(body, path)

    def completed(self, path: str, value: JsonValue = None) -> "History":
        """The step has its outcome."""
        body = e.StepCompleted(
            attempt=1, output=sealed(value), summary=None, via="tool", tool_used="some.tool", duration_s=0.0
        )
        return self.say(body, path)


def running(*steps: StepSpec, effect: Effect = Effect.PURE, **keys: object) -> History:
    """A claimed task whose first step is being called."""
    return History(plan(*steps, **keys)).claimed().called(steps[0].id, effect)
