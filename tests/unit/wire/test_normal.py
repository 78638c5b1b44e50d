"""Plans as JSON: short and long forms are one plan, the digest names it, and every wrong shape is named."""

import pytest

from everstep.domain.ids import Millis
from everstep.domain.plan import ApproveSpec, FallbackSpec, RetrySpec
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.normal import digest, from_json, to_json
from tests.unit.known_tools import plan, spec, step

# The digest of section 1's hello plan: it may never change, stored tasks are found by it.
HELLO: JsonObject = {
    "name": "hello",
    "steps": [
        {"id": "hits", "tool": "search.local", "with": {"query": "durable", "glob": "*.md"}},
        {
            "id": "note",
            "tool": "file.write",
            "with": {"path": "hello.txt", "text": "Searched ${hits.indexed} files"},
            "approve": "Write hello.txt?",
        },
    ],
    "outputs": {"file": "${note.path}"},
}
HELLO_DIGEST = "sha256:accf69a94561ad178fa6efcf8ebf3b105fde308fdd9198cfcc85fdf9a8ecf310"

SAME: list[tuple[JsonObject, JsonObject]] = [
    (step("a", retry=3), step("a", retry={"times": 3})),
    (step("a", approve="x"), step("a", approve={"title": "x"})),
    (step("a", approve=True), step("a", approve={"title": "Run search.local?"})),
    (step("a", timeout="90s"), step("a", timeout="1m30s")),
    (step("a", limits={"output": "1000KB"}), step("a", limits={"output": "1MB"})),
    (step("a", bind="a"), step("a")),
    (step("a", when=True, retryable=False), step("a")),
    (step("a", title=None, needs=None, retry=None), step("a")),
    (step("a", retry={}, limits={}, fallback=[], resources=[]), step("a")),
    (step("a", resources=["docs://x"]), step("a", resources=[{"uri": "docs://x"}])),
    (step("a", approve={"title": "x", "by": "human", "on_reject": "fail"}), step("a", approve="x")),
    ({"id": "a", "tool": "t", "with": {}}, {"tool": "t", "id": "a"}),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_one_plan(one: JsonObject, other: JsonObject) -> None:
    assert spec(plan(one)) == spec(plan(other))
    assert digest(spec(plan(one))) == digest(spec(plan(other)))


def test_plan_keys_in_short_and_long() -> None:
    one = plan(step("a"), inputs={"topic": "string"}, format=1, outputs={}, defaults={"retry": 2}, limits={})
    other = plan(step("a"), inputs={"topic": {"type": "string"}}, defaults={"retry": {"times": 2}})
    assert digest(spec(one)) == digest(spec(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (plan(step("a"), step("b")), plan(step("b"), step("a"))),
        (plan(step("a")), plan(step("a", needs=[]))),
        (plan(step("a")), plan(step("a", with_={"query": "q", "glob": None}))),
        (plan(step("a", fallback=[{"value": None}])), plan(step("a"))),
        (plan(step("a"), outputs={"x": None}), plan(step("a"))),
    ],
)
def test_differences_that_count(one: JsonObject, other: JsonObject) -> None:
    assert digest(spec(one)) != digest(spec(other))


def test_the_digest_of_hello() -> None:
    assert digest(spec(HELLO)) == HELLO_DIGEST


FULL = plan(
    step(
        "a",
        bind="b",
        title="t",
        needs=[],
        when="${inputs.n > 0}",
        for_each=[1],
        parallel=2,
        timeout="5s",
        retry={"times": 1, "delay": "1s", "factor": 1.5, "max_delay": "9s", "within": "1h", "only": ["crash"]},
        retryable=True,
        on_error="continue",
        fallback=[{"tool": "x.y", "with": {"a": None}, "timeout": "1s", "retry": 0}, {"value": None}],
        approve={"title": "x", "show": [1], "edit": True, "by": "llm", "within": "1h", "on_timeout": "wait"},
        on_uncertain="fail",
        effect="once",
        undo={"tool": "x.z", "with": {"k": "v"}, "approve": True},
        guidance="g",
        resources=[{"uri": "docs://{x}", "vars": {"x": 1}}],
        pool="p",
        breaker="k",
        limits={"memory": "1GB", "cpu_time": "1m", "output": "1MB", "disk": "1GiB", "cost": 0.5},
    ),
    title="T",
    description="D",
    guidance="G",
    inputs={"n": "integer", "s": {"type": "string", "default": "x"}},
    defaults={"timeout": "1m", "on_error": "pause", "on_uncertain": "ask", "limits": {"cost": 1}},
    limits={"wall_time": "1h", "calls": 9, "cost": 5, "on_reached": "fail"},
    parallel=4,
    done_when="${b != null}",
    finally_=[step("z")],
    outputs={"o": "${b}", "null": None},
)


def test_the_normal_form_reads_back() -> None:
    whole = spec(FULL)
    written = to_json(whole)
    assert spec(written) == whole
    assert to_json(spec(written)) == written


def test_facts_of_a_full_plan() -> None:
    first = spec(FULL).steps[0]
    assert first.retry == RetrySpec(
        times=1,
        delay_ms=Millis(1000),
        factor=1.5,
        max_delay_ms=Millis(9000),
        within_ms=Millis(3_600_000),
        only=("crash",),
    )
    assert first.fallback[1] == FallbackSpec(value=None)
    assert first.undo is not None
    assert first.undo.approve == ApproveSpec(title="Run x.z?")
    assert first.limits is not None
    assert (first.limits.memory_bytes, first.limits.disk_bytes) == (10**9, 2**30)


SHAPES: list[tuple[JsonValue, str, str, str, str | None]] = [
    ([], "bad_type", "", "the plan must be a map, not a list", None),
    (None, "bad_type", "", "the plan must be a map, not empty", None),
    ({"steps": [step("a")]}, "missing_key", "", "the plan has no 'name'", None),
    ({"name": "p"}, "missing_key", "", "the plan has no 'steps'", None),
    ({"name": "p", "steps": None}, "missing_key", "", "the plan has no 'steps'", None),
    ({"name": "p", "steps": {}}, "bad_type", "/steps", "'steps' must be a list, not a map", None),
    ({"name": 3, "steps": [step("a")]}, "bad_type", "/name", "'name' must be text, not a number", None),
    ({"name": "${x}", "steps": [step("a")]}, "binding_not_allowed", "/name", "'name' must be written out", None),
    (plan(step("a"), timeout="1h"), "unknown_key", "/timeout", "'timeout' is not a key here", "limits.wall_time"),
    (plan(step("a"), format=2), "bad_value", "/format", "'format' must be 1 to 1, not 2", None),
    (plan(step("a"), guidance="x" * 4001), "too_large", "/guidance",
     "'guidance' has 4001 characters, the limit is 4000", None),
    (plan(step("a"), parallel=65), "bad_value", "/parallel", "'parallel' must be 1 to 64, not 65", None),
    (plan(step("a"), parallel=True), "bad_type", "/parallel",
     "'parallel' must be a whole number, not true or false", None),
    (plan(step("a"), done_when="x"), "bad_type", "/done_when",
     "'done_when' must be true, false or ${…}, not text", None),
    (plan(step("a"), limits={"cost": -1}), "bad_value", "/limits/cost", "'cost' must be at least 0, not -1", None),
    (plan(step("a"), limits={"memory": 5}), "bad_type", "/limits/memory",
     "'memory' must be a size such as 512MB, not a number", None),
    (plan(step("a"), limits={"memory": "5"}), "bad_value", "/limits/memory",
     "'5' is not a size, write 100KB, 512MB, 2GiB", None),
    (plan(step("a"), inputs=[]), "bad_type", "/inputs", "'inputs' must be a map, not a list", None),
    (plan(step("a"), inputs={"x": 1}), "bad_type", "/inputs/x",
     "input 'x' must be a type word or a schema, not a number", None),
    (plan(step("a"), inputs={"x": {}}), "missing_key", "/inputs/x", "input 'x' has no 'type'", None),
    (plan(step("a"), inputs={"x": "int"}), "bad_value", "/inputs/x",
     "'int' is not a type, write string integer number boolean array object secret", "integer"),
    (plan(*[step(f"s{at}") for at in range(501)]), "too_large", "/steps", "501 steps, the limit is 500", None),
    (plan({"id": "page"}), "missing_key", "/steps/0", "step 'page' has neither 'tool' nor 'resources'", None),
    (plan({"tool": "x"}), "missing_key", "/steps/0", "step 1 has no 'id'", None),
    ({"name": "p", "steps": ["x"]}, "bad_type", "/steps/0", "step 1 must be a map, not text", None),
    (plan(step("a", retries=3)), "unknown_key", "/steps/0/retries", "'retries' is not a key here", "retry"),
    (plan(step("a", tmeout="3s")), "unknown_key", "/steps/0/tmeout", "'tmeout' is not a key here", "timeout"),
    (plan(step("a", timeout="30 sec")), "bad_value", "/steps/0/timeout",
     "'30 sec' is not a duration, write 500ms, 30s, 1h30m", None),
    (plan(step("a", timeout=30)), "bad_type", "/steps/0/timeout",
     "'timeout' must be a duration such as 30s, not a number", None),
    (plan(step("a", timeout="25h")), "bad_value", "/steps/0/timeout", "'timeout' is at most 1d", None),
    (plan(step("a", timeout="${x}")), "binding_not_allowed", "/steps/0/timeout", "'timeout' must be written out", None),
    (plan(step("a", tool="${x}")), "binding_not_allowed", "/steps/0/tool", "'tool' must be written out", None),
    (plan(step("a", retry="${x}")), "bad_type", "/steps/0/retry", "'retry' must be a map, not text", None),
    (plan(step("a", retry=21)), "bad_value", "/steps/0/retry", "'retry' must be 0 to 20, not 21", None),
    (plan(step("a", retry={"only": ["oops"]})), "bad_value", "/steps/0/retry/only/0",
     "'only'[0] must be timeout, network, rate_limited, server_error or crash, not 'oops'", None),
    (plan(step("a", when=None)), "bad_type", "/steps/0/when", "'when' must be true, false or ${…}, not empty", None),
    (plan(step("a", when="{{ a.b }}")), "bad_type", "/steps/0/when",
     "'when' must be true, false or ${…}, not text", "${a.b}"),
    (plan(step("a", for_each="x")), "bad_type", "/steps/0/for_each",
     "'for_each' must be a list or ${…}, not text", None),
    (plan(step("a", retryable="${x}")), "binding_not_allowed", "/steps/0/retryable",
     "'retryable' must be written out", None),
    (plan(step("a", on_error="ignore")), "bad_value", "/steps/0/on_error",
     "'on_error' must be fail, continue or pause, not 'ignore'", "continue"),
    (plan(step("a", on_error=True)), "bad_type", "/steps/0/on_error",
     "'on_error' must be fail, continue or pause, not true or false", None),
    (plan(step("a", effect="oncee")), "bad_value", "/steps/0/effect",
     "'effect' must be pure, idempotent, verifiable or once, not 'oncee'", "once"),
    (plan(step("a", approve=False)), "bad_value", "/steps/0/approve",
     "'approve' is true, a title or a map; leave it out to ask nobody", None),
    (plan(step("a", approve={})), "missing_key", "/steps/0/approve", "'approve' has no 'title'", None),
    (plan(step("a", approve={"title": "x", "edit": False})), "bad_type", "/steps/0/approve/edit",
     "'edit' must be true or a list, not true or false", None),
    (plan(step("a", fallback=[{"value": 1, "with": {}}])), "key_conflict", "/steps/0/fallback/0",
     "'value' stands alone, without 'with'", None),
    (plan(step("a", fallback=[{}])), "missing_key", "/steps/0/fallback/0",
     "'fallback'[0] has neither 'tool' nor 'value'", None),
    (plan(step("a", undo={"with": {}})), "missing_key", "/steps/0/undo", "'undo' has no 'tool'", None),
    (plan(step("a", with_=[])), "bad_type", "/steps/0/with", "'with' must be a map, not a list", None),
    (plan(step("a", limits={"cost": "${x}"})), "binding_not_allowed", "/steps/0/limits/cost",
     "'cost' must be written out", None),
    (plan(step("a", limits={"cost": "x"})), "bad_type", "/steps/0/limits/cost",
     "'cost' must be a number, not text", None),
    (plan(step("a", limits={"disk": "${x}"})), "binding_not_allowed", "/steps/0/limits/disk",
     "'disk' must be written out", None),
    (plan(step("a", parallel="${x}")), "binding_not_allowed", "/steps/0/parallel",
     "'parallel' must be written out", None),
    (plan(step("a", on_error="${x}")), "binding_not_allowed", "/steps/0/on_error",
     "'on_error' must be written out", None),
    (plan(step("a", pool=3)), "bad_type", "/steps/0/pool", "'pool' must be text, not a number", None),
    (plan(step("a", title=3)), "bad_type", "/steps/0/title", "'title' must be text, not a number", None),
    (plan(step("a", needs="b")), "bad_type", "/steps/0/needs", "'needs' must be a list, not text", None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "code", "path", "message", "suggestion"), SHAPES)
def test_wrong_shapes(value: JsonValue, code: str, path: str, message: str, suggestion: str | None) -> None:
    read = from_json(value)
    assert read.plan is None
    assert [(problem.code, problem.path, problem.message, problem.suggestion) for problem in read.problems] == [
        (f"plan.{code}", path, message, suggestion)
    ]


def test_problems_are_bounded() -> None:
    arguments: JsonObject = {f"k{at}": 1 for at in range(5_000)}
    assert len(from_json({**plan(step("a")), **arguments}).problems) == 1_000
