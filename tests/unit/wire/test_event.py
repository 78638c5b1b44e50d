"""Every event survives the journal: what is written is what is read, in the spelling that the doors promise."""

import json
from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.domain import events as e
from everstep.domain import pauses as p
from everstep.domain.changes import Change, Link
from everstep.domain.continued import Continued
from everstep.domain.detour import Degraded
from everstep.domain.errors import LimitExceeded
from everstep.domain.failure import Category, EffectState, Failure
from everstep.domain.ids import Digest, Epoch, Instant, Millis, PauseId, Seq, StepPath, TaskId, WorkerId
from everstep.domain.limits import TaskLimits
from everstep.domain.plan import Effect, PlanSpec, StepSpec
from everstep.domain.states import TaskStatus
from everstep.domain.usage import Usage
from everstep.domain.values import JsonValue, Sealed
from everstep.wire import event as wire
from everstep.wire import pause as wire_pause
from everstep.wire import plan as wire_plan
from everstep.wire.times import from_text, to_text
from everstep.wire.values import Codec

CODEC = Codec()
TASK = TaskId("t_7k2m9qx4c1d5e8f0g3h6j9k2m5")
WORKER = WorkerId("w_5d1m9qx4c1d5e8f0g3h6j9k2m5")
PLAN = PlanSpec(
    name="brief",
    steps=(StepSpec(id="hits", tool="search.local", arguments={"query": "${inputs.topic}"}, bind="hits"),),
    outputs={"found": "${hits}"},
)

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-(2**53), 2**53) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(words, values, max_size=3)
instants = st.integers(0, 253_402_300_799_999).map(Instant)
seconds = st.floats(0, 1e9)
paths = st.sampled_from([StepPath("hits"), StepPath("pages[3]"), StepPath("ende-ü")])
pause_ids = st.just(PauseId("p_3c2m9qx4c1d5e8f0g3h6j9k2m5"))
epochs = st.integers(0, 2**40).map(Epoch)
counts = st.integers(0, 1000)


@st.composite
def sealed_values(draw: st.DrawFn) -> Sealed:
    """Inline or by reference, fresh from the codec or read from a journal before."""
    sealed = CODEC.seal(draw(values), untrusted=draw(st.booleans()))
    sealed.by_reference = draw(st.booleans())
    if draw(st.booleans()):
        sealed.raw = None
    return sealed


failures = st.builds(
    Failure,
    code=words,
    category=st.sampled_from(Category),
    message=words,
    what_to_do=words,
    effect_state=st.sampled_from(EffectState),
    retry_after_ms=st.none() | st.integers(0, 10**12),
    details=st.none() | objects,
)
errors = st.builds(
    e.ErrorRecord,
    id=words,
    failure=failures,
    attempt=st.none() | counts,
    retries=counts,
    retries_max=counts,
    retry_at=st.none() | instants,
    skipped_steps=st.lists(words, max_size=2).map(tuple),
    task_continues=st.booleans(),
)
issues = st.lists(
    st.builds(e.Issue, step=st.none() | paths, status=words, reason=words, error=st.none() | failures), max_size=2
).map(tuple)

STRATEGIES: dict[Any, st.SearchStrategy[Any]] = {
    str: words,
    bool: st.booleans(),
    int: counts,
    float: seconds,
    int | float: counts | seconds,
    str | None: st.none() | words,
    int | None: st.none() | counts,
    Instant: instants,
    Millis | None: st.none() | st.integers(0, 10**9).map(Millis),
    Digest | None: st.none() | st.just(wire_plan.digest(PLAN)),
    PauseId | None: st.none() | pause_ids,
    StepPath: paths,
    StepPath | None: st.none() | paths,
    tuple[str, ...]: st.lists(words, max_size=2).map(tuple),
    tuple[StepPath, ...]: st.lists(paths, max_size=2).map(tuple),
    Instant | None: st.none() | instants,
    PauseId: pause_ids,
    Epoch: epochs,
    WorkerId: st.just(WORKER),
    WorkerId | None: st.none() | st.just(WORKER),
    Digest: st.just(wire_plan.digest(PLAN)),
    Sealed: sealed_values(),
    Sealed | None: st.none() | sealed_values(),
    e.ErrorRecord: errors,
    tuple[e.Issue, ...]: issues,
    dict[str, str]: st.dictionaries(words, words, max_size=2),
    PlanSpec: st.just(PLAN),
}
STRATEGIES[dict[str, dict[str, "JsonValue"]]] = st.dictionaries(words, objects, max_size=2)
usages = st.builds(Usage, cost=st.floats(0.5, 9), tokens_in=st.none() | counts, counts=st.dictionaries(words, seconds))
STRATEGIES[Usage | None] = st.none() | usages
STRATEGIES[dict[str, str] | None] = st.none() | st.dictionaries(words, words, max_size=2)
STRATEGIES[TaskLimits | None] = st.none() | st.builds(
    TaskLimits, calls=st.none() | counts, cost=st.none() | seconds, wall_time_ms=st.none() | counts, on_reached=words
)
STRATEGIES[Continued | None] = st.none() | st.builds(
    Continued, step=paths, arguments=sealed_values(), key=st.none() | words
)
STRATEGIES[Failure | None] = st.none() | failures
STRATEGIES[float | None] = st.none() | seconds
STRATEGIES[dict[str, "JsonValue"] | None] = st.none() | objects
STRATEGIES[dict[str, "JsonValue"]] = objects
STRATEGIES[tuple[dict[str, "JsonValue"], ...]] = st.lists(objects, max_size=2).map(tuple)
STRATEGIES[e.Promise] = st.builds(e.Promise, p10=seconds, p50=seconds, p90=seconds, basis=words, n=counts)
STRATEGIES[Degraded | None] = st.none() | st.builds(
    Degraded, level=counts, set=objects, drop=st.lists(words, max_size=2).map(tuple)
)


def records(kind: type) -> st.SearchStrategy[Any]:
    """Any record of this class, field by field."""
    return st.builds(kind, **{one.name: _strategy(one.type) for one in fields(kind)})


def _strategy(hint: Any) -> st.SearchStrategy[Any]:
    if isinstance(hint, type) and issubclass(hint, str) and hasattr(hint, "__members__"):
        return st.sampled_from(list(hint.__members__.values()))
    if hint is JsonValue:
        return values
    if hint is p.Pause:
        return pauses
    if hint == Link | None:
        return st.none() | st.builds(Link, task=st.just(TASK), step=st.none() | paths, link=st.just("fork_of"))
    if hint == tuple[Change, ...]:
        return st.lists(changes, max_size=2).map(tuple)
    if hint == tuple[e.RecoveredStep, ...]:
        return st.lists(records(e.RecoveredStep), max_size=2).map(tuple)
    return STRATEGIES[hint]


changes = st.builds(
    Change,
    op=st.sampled_from(["append", "replace", "set", "skip"]),
    id=words,
    step=st.none() | st.just(PLAN.steps[0]),
    after=st.none() | words,
    note=st.none() | words,
)
pauses = st.builds(
    p.Pause,
    id=pause_ids,
    step=st.none() | paths,
    reason=st.one_of([records(kind) for kind in p.TYPE_OF]),
    title=words,
    why=words,
    guidance=st.none() | words,
    call=st.none() | records(p.GatedCall),
    show=st.lists(values, max_size=2).map(tuple),
    may_answer=st.sampled_from([*p.MAY_ANSWER.values()]),
    expires_at=st.none() | instants,
    on_timeout=st.none() | words,
)
BODIES = [kind for kind in get_args(e.Body) if kind is not e.Unknown]
unknown = st.builds(e.Unknown, type=st.just("step.dreamt"), data=objects)
actors = st.builds(e.Actor, kind=st.sampled_from(e.ActorKind), id=words, via=words)


def recorded(bodies: st.SearchStrategy[e.Body]) -> st.SearchStrategy[e.Recorded]:
    return st.builds(
        e.Recorded,
        task=st.just(TASK),
        seq=st.integers(1, 2**40).map(Seq),
        at=instants,
        generation=st.integers(1, 9),
        actor=actors,
        step=st.none() | paths,
        body=bodies,
    )


@pytest.mark.parametrize("kind", [*BODIES, e.Unknown], ids=lambda kind: kind.TYPE)
def test_round_trip(kind: type) -> None:
    @given(recorded(unknown if kind is e.Unknown else records(kind)))
    def check(event: e.Recorded) -> None:
        again = wire.decode(wire.encode(event))
        assert again == event
        assert wire.decode(wire.encode(event).decode()) == event
        for one in fields(kind):
            before, after = getattr(event.body, one.name), getattr(again.body, one.name)
            if isinstance(before, Sealed):
                assert (after.size_bytes, after.by_reference) == (before.size_bytes, before.by_reference)
                assert after.value == (None if before.by_reference else before.value)

    check()


def started() -> e.Recorded:
    return e.Recorded(
        task=TASK,
        seq=Seq(3),
        at=Instant(1_794_765_731_495),
        generation=1,
        actor=e.Actor(kind=e.ActorKind.SYSTEM, id=WORKER, via="engine"),
        step=StepPath("hits"),
        body=e.AttemptStarted(
            attempt=1,
            epoch=Epoch(2),
            worker=WORKER,
            tool="search.local",
            tool_version="1.0.0",
            effect=Effect.PURE,
            idempotency_key="4be1",
            input=CODEC.seal({"query": "solar"}),
        ),
    )


def test_spelling_of_an_event() -> None:
    assert json.loads(wire.encode(started())) == {
        "task": TASK,
        "seq": 3,
        "at": "2026-11-15T18:02:11.495Z",
        "type": "attempt.started",
        "step": "hits",
        "generation": 1,
        "actor": {"kind": "system", "id": WORKER, "via": "engine"},
        "data": {
            "attempt": 1,
            "epoch": 2,
            "worker": WORKER,
            "tool": "search.local",
            "tool_version": "1.0.0",
            "effect": "pure",
            "idempotency_key": "4be1",
            "input": {
                "value": {"query": "solar"},
                "digest": CODEC.seal({"query": "solar"}).digest,
                "bytes": 17,
                "untrusted": False,
            },
            "coerced": [],
            "approval": None,
            "degraded": None,
        },
    }


def test_a_sealed_value_is_never_encoded_again() -> None:
    event = started()
    assert isinstance(event.body, e.AttemptStarted)
    event.body.input.value = object()  # type: ignore[assignment]  # nothing could encode this
    assert b'{"query":"solar"}' in wire.encode(event)


def test_large_values_are_referred_to() -> None:
    large = CODEC.seal("ü" * 40_000)
    body = e.StepCompleted(attempt=1, output=large, summary=None, via="tool", tool_used="t", duration_s=0.5)
    event = started()
    encoded = wire.encode(_with(event, body))
    output = json.loads(encoded)["data"]["output"]
    assert {**output, "preview": ""} == {
        "artifact": large.digest,
        "media_type": "application/json",
        "bytes": 80_002,
        "preview": "",
        "untrusted": False,
    }
    assert output["preview"] == '"' + "ü" * 1023
    assert len(encoded) < 4096


def test_an_event_is_bounded() -> None:
    body = e.PauseAnswered(pause=PauseId("p_1"), answer="answer", value="x" * wire.EVENT_BYTES_MAX)
    with pytest.raises(LimitExceeded) as refused:
        wire.encode(_with(started(), body))
    assert refused.value.code == "too_large"


def test_a_long_plan_stands_beside_its_event() -> None:
    step = StepSpec(id="s", tool="echo", arguments={"text": "x" * 200}, bind="s")
    steps = tuple(replace(step, id=f"s{number}", bind=f"s{number}") for number in range(200))
    plan = PlanSpec(name="long", steps=steps, outputs={})
    kept = wire.long_plan(_created(plan))
    assert kept is not None
    assert wire.long_plan(_created(PLAN)) is None
    digest, raw = kept
    event = _with(started(), _created(plan))
    encoded = wire.encode(event)
    assert len(encoded) < wire.EVENT_BYTES_MAX
    assert json.loads(encoded)["data"]["plan"]["artifact"] == digest
    assert wire.decode(encoded, {digest: raw}.__getitem__) == event
    with pytest.raises(wire.Unreadable):
        wire.decode(encoded)


@pytest.mark.req("WF-22")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"from":"queued"', b'"from":"dreaming"'),
        (b'"kind":"system"', b'"kind":"ghost"'),
        (b'"seq":3', b'"seq":"3"'),
        (b"2026-11-15T18:02:11.495Z", b"2026-11-15 18:02:11"),
        (b'"epoch":2', b'"epoch":null'),
    ],
)
def test_unknown_words_are_refused(old: bytes, new: bytes) -> None:
    body = e.TaskStarted(from_status=TaskStatus.QUEUED, worker=WORKER, epoch=Epoch(2))
    encoded = wire.encode(_with(started(), body))
    assert old in encoded
    with pytest.raises(wire.Unreadable):
        wire.decode(encoded.replace(old, new))


@pytest.mark.parametrize("encoded", [b"", b"{}", b"[1]", b"\xff", b'{"task":1}'])
def test_what_is_no_event_is_refused(encoded: bytes) -> None:
    with pytest.raises(wire.Unreadable):
        wire.decode(encoded)


@given(instants)
def test_times_round_trip(at: Instant) -> None:
    text = to_text(at)
    assert len(text) == 24
    assert from_text(text) == at


@pytest.mark.parametrize("text", ["", "2026-11-15T18:02:11Z", "2026-11-15T18:02:11.4955Z", "2026-13-15T18:02:11.495Z"])
def test_other_spellings_of_time_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_text(text)


@pytest.mark.parametrize("kind", p.TYPE_OF, ids=lambda kind: kind.__name__)
def test_reasons_are_spelled_by_name(kind: type) -> None:
    spelling = wire_pause._SPELLING[kind]
    assert spelling.__struct_fields__ == tuple(one.name for one in fields(kind))
    assert spelling.__struct_config__.tag == p.TYPE_OF[kind]


def test_every_answer_is_listed_with_its_request() -> None:
    reason = p.InputRequired(blocked_step=StepPath("ask"), question="How many?", schema={"type": "integer"})
    pause = p.Pause(id=PauseId("p_1"), step=StepPath("ask"), reason=reason, title="How many?", why="the plan asks")
    data = json.loads(wire.encode(_with(started(), e.PauseOpened(pause=pause))))["data"]
    assert data["reason"] == {
        "type": "inputRequired",
        "blockedStep": "ask",
        "question": "How many?",
        "schema": {"type": "integer"},
    }
    assert [one["answer"] for one in data["answers"]] == ["answer", "skip", "cancel"]
    assert data["answers"][0]["schema"]["properties"] == {"value": {"type": "integer"}}
    assert data["answers"][1] == {
        "answer": "skip",
        "label": "Skip this step",
        "schema": None,
        "request": {"method": "POST", "path": "/v1/inbox/p_1/answer", "body": {"answer": "skip"}},
    }


def _with(event: e.Recorded, body: e.Body) -> e.Recorded:
    return e.Recorded(
        task=event.task,
        seq=event.seq,
        at=event.at,
        generation=event.generation,
        actor=event.actor,
        step=event.step,
        body=body,
    )


def _created(plan: PlanSpec) -> e.TaskCreated:
    return e.TaskCreated(
        plan=plan,
        plan_digest=wire_plan.digest(plan),
        trusted=True,
        key=None,
        title="t",
        inputs=CODEC.seal({}),
        labels={},
        priority=1,
        workspace="",
    )
