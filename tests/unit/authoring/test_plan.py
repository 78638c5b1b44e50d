"""The plan builder: the same facts as a file, references that bind, text that stays text."""

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.authoring.plan import Plan
from everstep.authoring.ref import Ref
from everstep.authoring.tool import tool
from everstep.domain.bindings import Absent, Found, Resolved, compile_value, resolve
from everstep.domain.errors import NotFound, PlanError
from everstep.domain.handles import Secret
from everstep.domain.ids import Digest
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.plan import digest, read_plan

HELLO = """
name: hello
steps:
  - id: hits
    tool: search.local
    with: {query: durable, glob: "*.md"}
  - id: note
    tool: file.write
    with: {path: hello.txt, text: "Searched ${hits.indexed} files"}
    approve: Write hello.txt?
outputs: {file: "${note.path}"}
"""


def hello() -> Plan:
    plan = Plan("hello")
    hits = plan.step("hits", "search.local", {"query": "durable", "glob": "*.md"})
    note = plan.step(
        "note",
        "file.write",
        {"path": "hello.txt", "text": f"Searched {hits.indexed} files"},
        approve="Write hello.txt?",
    )
    plan.output(file=note.path)
    return plan


def digest_of(text: str) -> Digest:
    read = read_plan(text)
    assert read.plan is not None, read.problems
    return digest(read.plan)


def test_file_and_code_have_the_same_digest() -> None:
    assert hello().digest == digest_of(HELLO)
    assert hello().trusted
    assert repr(hello()) == "<Plan hello, 2 steps>"


RESEARCH = r"""
name: research-brief
title: Brief on ${inputs.topic}
guidance: One page, three sources. Never send mail without the approval.
inputs:
  topic: string
  to: {type: string, format: email}
defaults: {timeout: 30s, retry: 2}
limits: {cost: 0.50, calls: 200, wall_time: 1h}
done_when: ${draft.done == true and not (hits.count < 3 or hits.count == null)}
steps:
  - {id: hits, tool: search.web, with: {query: "${inputs.topic}", limit: 6}}
  - id: read_pages
    bind: pages
    for_each: ${hits.results}
    parallel: 3
    tool: browser.read
    with: {url: "${item.url}"}
    on_error: continue
    fallback: [{tool: http.get, with: {url: "${item.url}", n: "${index}"}}, {value: null}]
  - id: draft
    tool: text.summarize
    when: ${len(pages) > 0}
    with: {texts: "${pages}", sentences: 8}
    needs: [read_pages]
  - id: send
    tool: mail.send
    with: {to: "${inputs.to}", subject: "Brief: ${inputs.topic}", text: "${draft.markdown}"}
    approve:
      title: Send to ${inputs.to}?
      show: ["${draft.markdown}"]
      edit: [subject, text]
      within: 24h
      on_timeout: reject
      on_reject: skip
    retry: {times: 4, delay: 2s, only: [network, server_error]}
    on_error: pause
    guidance: If the server refuses ${inputs.to}, ask for another address.
    undo: {tool: mail.recall, with: {id: "${send.id}"}, approve: "Recall ${send.id}?"}
finally:
  - {id: note, tool: file.append, with: {path: briefs.log, text: "${task.id} ${inputs.topic} ${error.code}\n"}}
outputs:
  message: ${default(send.message_id, null)}
"""


def research() -> Plan:
    plan = Plan(
        "research-brief",
        inputs={"topic": str, "to": {"type": "string", "format": "email"}},
        guidance="One page, three sources. Never send mail without the approval.",
        defaults={"timeout": "30s", "retry": 2},
        limits={"cost": 0.5, "calls": 200, "wall_time": "1h"},
    )
    topic, to = plan.inputs.topic, plan.inputs["to"]
    plan.title = f"Brief on {topic}"
    hits = plan.step("hits", "search.web", {"query": topic, "limit": 6})
    url = plan.item.url
    pages = plan.step(
        "read_pages",
        "browser.read",
        {"url": url},
        bind="pages",
        for_each=hits.results,
        parallel=3,
        on_error="continue",
        fallback=[{"tool": "http.get", "with": {"url": url, "n": plan.index}}, {"value": None}],
    )
    draft = plan.step(
        "draft",
        "text.summarize",
        {"texts": pages, "sentences": 8},
        when=plan.expr("len(pages) > 0"),
        needs=[pages],
    )
    plan.done_when = (draft.done == True) & ~((hits.count < 3) | (hits.count == None))  # noqa: E711, E712
    plan.step(
        "send",
        "mail.send",
        {"to": to, "subject": f"Brief: {topic}", "text": draft.markdown},
        approve={
            "title": f"Send to {to}?",
            "show": [draft.markdown],
            "edit": ("subject", "text"),
            "within": "24h",
            "on_timeout": "reject",
            "on_reject": "skip",
        },
        retry={"times": 4, "delay": "2s", "only": ["network", "server_error"]},
        on_error="pause",
        guidance=f"If the server refuses {to}, ask for another address.",
        undo={
            "tool": "mail.recall",
            "with": {"id": plan.expr("send.id")},
            "approve": f"Recall {plan.expr('send.id')}?",
        },
    )
    text = f"{plan.expr('task.id')} {topic} {plan.error.code}\n"
    plan.finally_step("note", "file.append", {"path": "briefs.log", "text": text})
    plan.output(message=plan.expr("default(send.message_id, null)"))
    return plan


def test_every_key_says_the_same_in_both() -> None:
    read = read_plan(RESEARCH)
    assert read.plan is not None, read.problems
    assert research().spec == read.plan
    assert research().digest == digest(read.plan)


# --- references ---


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda a: a.b.c, "a.b.c"),
        (lambda a: a["b"]["b-c"], 'a.b["b-c"]'),
        (lambda a: a[0][-1], "a[0][-1]"),
        (lambda a: a['say "hi"'], r'a["say \"hi\""]'),
        (lambda a: a["from"], "a.from"),
        (lambda a: a["_x"], "a._x"),
        (lambda a: a.b == "x", 'a.b == "x"'),
        (lambda a: 4 == a.b, "a.b == 4"),  # noqa: SIM300 -- Python turns it round
        (lambda a: a != None, "a != null"),  # noqa: E711
        (lambda a: a < 3, "a < 3"),
        (lambda a: a <= 2.5, "a <= 2.5"),
        (lambda a: a > -1, "a > -1"),
        (lambda a: a >= a.b, "a >= a.b"),
        (lambda a: a == [1, "x", a.b], 'a == [1, "x", a.b]'),
        (lambda a: (a == 1) == (a == 2), "(a == 1) == (a == 2)"),
        (lambda a: (a > 1) & (a < 9), "a > 1 and a < 9"),
        (lambda a: a.x & a.y & a.z, "a.x and a.y and a.z"),
        (lambda a: a.x & (a.y & a.z), "a.x and (a.y and a.z)"),
        (lambda a: a.x | a.y & a.z, "a.x or a.y and a.z"),
        (lambda a: (a.x | a.y) & a.z, "(a.x or a.y) and a.z"),
        (lambda a: ~a.x, "not a.x"),
        (lambda a: ~~a.x, "not not a.x"),
        (lambda a: ~(a.x == 1), "not a.x == 1"),
        (lambda a: ~(a.x & a.y), "not (a.x and a.y)"),
        (lambda a: ~a.x == 1, "(not a.x) == 1"),
        (lambda a: a.x & True, "a.x and true"),
    ],
)
def test_expressions(make: Any, text: str) -> None:
    plan = Plan("p")
    ref = make(plan.step("a", "t.t"))
    assert repr(ref) == f"Ref({text})"
    plan.output(x=ref)
    assert plan.to_dict()["outputs"] == {"x": f"${{{text}}}"}


def test_written_expressions() -> None:
    plan = Plan("p")
    assert repr(plan.expr("hits.results").first[0]) == "Ref(hits.results.first[0])"
    assert repr(plan.expr(" a or b ") & plan.expr("c")) == "Ref((a or b) and c)"
    for bad in ("a +", "", "a} ${b", "a}", "a b"):
        with pytest.raises(ValueError, match=r"^'"):
            plan.expr(bad)


@pytest.mark.parametrize(
    "use",
    [
        bool,
        list,
        len,
        lambda ref: 1 in ref,
        lambda ref: "yes" if ref else "no",
        lambda ref: ref.a == 1 and ref.b,
        lambda ref: [item for item in ref],  # noqa: C416 -- what people write
    ],
    ids=range(7),
)
def test_a_reference_has_no_value_yet(use: Any) -> None:
    with pytest.raises(TypeError, match="has no value while the plan is built; use when= or for_each="):
        use(Plan("p").step("a", "t.t"))


def test_other_misuses_are_said() -> None:
    plan = Plan("p")
    ref = plan.step("a", "t.t")
    with pytest.raises(TypeError, match="no value to format"):
        f"{ref:>10}"
    with pytest.raises(TypeError, match="is a condition"):
        (ref == 1).field  # noqa: B018
    with pytest.raises(TypeError, match="by text or by number"):
        ref[1:2]  # type: ignore[index]
    with pytest.raises(TypeError, match="cannot stand in an expression"):
        ref == {"a": 1}  # noqa: B015
    with pytest.raises(AttributeError, match=r"ref\['_private'\]"):
        ref._private  # noqa: B018
    with pytest.raises(TypeError, match="unhashable"):
        hash(ref)
    assert not hasattr(ref, "__deepcopy__")


# --- text is literal ---


class Values:
    """A scope of made-up outputs."""

    def __init__(self, values: dict[str, JsonValue]) -> None:
        self.values = values

    def root(self, name: str, /) -> Found | Absent:
        return Found(value=self.values[name])

    def step(self, step_id: str, /) -> None:
        return None


def evaluated(plan: Plan, value: JsonValue) -> JsonValue:
    plan.output(result=value)
    outputs = plan.to_dict()["outputs"]
    assert isinstance(outputs, dict)
    resolved = resolve(compile_value(outputs["result"]), Values({"a": "A", "b": 7}))
    assert isinstance(resolved, Resolved), resolved
    return resolved.value


@pytest.mark.parametrize(
    "text", ["${a}", "$${a}", "$$${a}", "costs $5", "$", "$$", "${", "}", "{a}", "${{a}}", "<<x:0>>", "a$", "$ {a}"]
)
def test_pasted_text_stays_text(text: str) -> None:
    plan = Plan("p")
    ref = plan.step("a", "t.t")
    assert evaluated(plan, text) == text
    del plan
    other = Plan("q")
    ref = other.step("a", "t.t")
    assert evaluated(other, f"{text}{ref}{text}") == f"{text}A{text}"


pieces = st.text("${}a\"'<>:0 \\", max_size=6)


@given(st.lists(st.tuples(pieces, st.sampled_from(["a", "b"])), max_size=4), pieces)
def test_any_text_around_references_stays_what_it_is(parts: list[tuple[str, str]], end: str) -> None:
    plan = Plan("p")
    refs = {"a": plan.step("a", "t.t"), "b": plan.step("b", "t.t")}
    text = "".join(f"{literal}{refs[name]}" for literal, name in parts) + end
    expected = "".join(literal + {"a": "A", "b": "7"}[name] for literal, name in parts) + end
    result = evaluated(plan, text)
    if len(parts) == 1 and not parts[0][0] and not end:
        assert str(result) == expected, "a lone binding keeps its type, as in a file"
    else:
        assert result == expected


@given(st.text(st.characters(codec="utf-8")))
def test_any_text_stays_text(text: str) -> None:
    plan = Plan("p")
    plan.step("a", "t.t")
    assert evaluated(plan, text) == text


def test_markers_of_one_plan_mean_nothing_in_another() -> None:
    one, other = Plan("p"), Plan("q")
    ref, stranger = one.step("a", "t.t"), other.step("a", "t.t")
    assert str(ref) != str(stranger)
    assert str(ref) == str(one.expr("a"))
    assert evaluated(other, f"{ref}{stranger}{ref}") == f"{ref}A{ref}"
    with pytest.raises(TypeError, match="of another plan"):
        other.output(y=ref)


def test_plans_leave_nothing_in_the_memory_of_expressions(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pattern: object, flags: int = 0) -> None:
        raise AssertionError(f"{pattern} is compiled for one plan alone")

    monkeypatch.setattr(re, "compile", refuse)
    plan = Plan("p")
    assert evaluated(plan, f"{plan.step('a', 't.t')} $5") == "A $5"


# --- values and keys ---


class Colour(Enum):
    RED = "red ${a}"


@dataclass
class Note:
    text: str


def test_values_become_json() -> None:
    plan = Plan("p")
    ref = plan.step("a", "t.t")
    moment = datetime(2026, 1, 31, tzinfo=UTC)
    note = Note("${a}")
    plan.step("b", "t.t", {"list": (1, ref), "deep": {"x": [ref.y, None]}, "at": moment, "c": Colour.RED, "n": note})
    steps = plan.to_dict()["steps"]
    assert isinstance(steps, list)
    assert isinstance(steps[1], dict)
    assert steps[1]["with"] == {
        "list": [1, "${a}"],
        "deep": {"x": ["${a.y}", None]},
        "at": "2026-01-31T00:00:00+00:00",
        "c": "red $${a}",
        "n": {"text": "$${a}"},
    }


def test_steps_are_needed_by_reference_or_id() -> None:
    plan = Plan("p")
    first = plan.step("a", "t.t", bind="first")
    plan.step("b", "t.t")
    plan.step("c", "t.t", needs=[first, "b"])
    assert plan.spec.steps[2].needs == ("a", "b")


def test_arguments_are_copied() -> None:
    arguments: dict[str, object] = {"x": [1]}
    plan = Plan("p")
    plan.step("a", "t.t", arguments)
    before = plan.digest
    arguments["x"] = 2
    assert plan.digest == before
    plan.title = "now it has one"
    assert plan.digest != before


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda p: p.step("a", "t.t", on_eror="fail"), r"a step has no 'on_eror' \(did you mean 'on_error'\?\)"),
        (lambda p: p.step("a", "t.t", depends_on=[]), r"did you mean 'needs'\?"),
        (lambda p: p.step("a", "t.t", arguments={}), "its arguments are the third value"),
        (lambda p: p.step("a", "t.t", tool="x"), "a step has no 'tool'"),
        (lambda p: p.step("a", len), "is no tool; give its name"),
        (lambda p: p.step("a", "t.t", [1]), "the arguments are a map"),
        (lambda p: p.step("a", "t.t", {"x": object()}), "not JSON"),
        (lambda p: p.step("a", "t.t", {"x": {1, 2}}), r"holds \{1, 2\}"),
        (lambda p: p.step("a", "t.t", {"x": {1: 2}}), "keys are text"),
        (lambda p: p.step("a", "t.t", {f"{p.item}": 2}), "never hold references"),
        (lambda p: p.step("a", "t.t", timeout=p.item), "'timeout' must be written out"),
        (lambda p: p.step("a", "t.t", timeout=f"{p.item}s"), "'timeout' must be written out, it takes no reference"),
        (lambda p: p.step("a", "t.t", retry={"times": p.item}), "'retry' must be written out"),
        (lambda p: p.step("a", "t.t", approve={"title": "x", "by": p.item}), "'approve.by' must be written out"),
        (lambda p: p.step("a", "t.t", needs="b"), "'needs' is a list"),
        (lambda p: p.step("a", "t.t", needs=[p.item]), "name the step itself"),
        (lambda p: p.step("a", "t.t", fallback={"tool": "x"}), "'fallback' is a list"),
        (lambda p: p.step("a", "t.t", fallback=["x"]), "'fallback' is a map"),
        (lambda p: p.step("a", "t.t", undo="x"), "'undo' is a map"),
        (lambda p: (p.output(x=1), p.output(x=2)), "'x' is given already"),
        (lambda p: Plan("q", inputs={"x": bytes}), "input 'x': the hint bytes has no JSON form"),
    ],
)
def test_mistakes_are_type_errors(build: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build(Plan("p"))


def test_inputs_by_python_type() -> None:
    plan = Plan(
        "p", inputs={"a": str, "b": "integer", "c": {"type": "array"}, "d": Literal["x"], "e": list[int], "f": Secret}
    )
    plan.step("s", "t.t")
    assert plan.to_dict()["inputs"] == {
        "a": {"type": "string"},
        "b": {"type": "integer"},
        "c": {"type": "array"},
        "d": {"enum": ["x"], "type": "string"},
        "e": {"type": "array", "items": {"type": "integer"}},
        "f": {"type": "secret"},
    }


class Twice(TypedDict):
    twice: int


@tool.pure("my.double")
async def double(n: int) -> Twice:
    return {"twice": n * 2}


def test_decorated_functions_are_tools() -> None:
    plan = Plan("p")
    ref = plan.step("a", double, {"n": 1}, fallback=[{"tool": double, "with": {"n": 2}}])
    plan.output(x=ref.twice)
    assert plan.spec.steps[0].tool == "my.double"
    assert plan.spec.steps[0].fallback[0].tool == "my.double"
    assert plan.tools == (double,)
    assert plan.check() == ()


def codes(plan: Plan) -> list[str]:
    return sorted(problem.code for problem in plan.check())


def test_check_finds_what_needs_no_engine() -> None:
    assert codes(hello()) == []
    plan = Plan("p", inputs={"topic": str})
    ref = plan.step("a", double, {"m": 1})
    plan.step("b", "some.where", {"x": plan.inputs.topci, "y": ref.thrice}, timeout="30 sec")
    found = codes(plan)
    for code in ("plan.unknown_argument", "plan.missing_argument", "plan.unknown_input", "plan.unknown_field"):
        assert code in found
    assert "plan.bad_value" in found
    assert "plan.unknown_tool" not in found
    with pytest.raises(PlanError, match=r"the plan 'p' has problems: .*30 sec") as refused:
        plan.spec  # noqa: B018
    assert refused.value.problems


def test_a_plan_must_be_json() -> None:
    plan = Plan("p")
    plan.step("a", "t.t", {"x": math.nan})
    with pytest.raises(PlanError, match="not JSON"):
        plan.spec  # noqa: B018


# --- files ---


@pytest.mark.parametrize("make", [hello, research])
def test_there_and_back(make: Any, tmp_path: Path) -> None:
    plan = make()
    for name, text in (("p.plan.yaml", plan.to_yaml()), ("p.plan.json", plan.to_json())):
        (tmp_path / name).write_text(text)
        loaded = Plan.load(tmp_path / name)
        assert loaded.digest == plan.digest
        assert loaded.trusted
        assert Plan.load(str(tmp_path / name)).to_dict() == plan.to_dict()
    given = Plan.from_dict(plan.to_dict())
    assert given.digest == plan.digest
    assert not given.trusted


def test_a_loaded_plan_can_be_built_on(tmp_path: Path) -> None:
    file = tmp_path / "hello.plan.yaml"
    file.write_text(HELLO.replace("name: hello", "name: hello\ntitle: Hi ${inputs.who}\ninputs: {who: string}"))
    plan = Plan.load(file)
    assert plan.title == "Hi ${inputs.who}"
    plan.step("more", "t.t", {"x": plan.expr("note.path")})
    assert [step.id for step in plan.spec.steps] == ["hits", "note", "more"]
    assert plan.spec.title == "Hi ${inputs.who}"


def test_bad_files_are_refused_with_their_place(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no file"):
        Plan.load(tmp_path / "none.plan.yaml")
    file = tmp_path / "bad.plan.yaml"
    file.write_text("name: p\nsteps:\n  - {id: a, tool: t.t, retries: 3}\n  - {id: b}\n")
    with pytest.raises(PlanError, match=r"bad\.plan\.yaml:3:\d+: .*retries.*and 1 more") as refused:
        Plan.load(file)
    assert len(refused.value.problems) == 2
    file.write_bytes(b"x" * 300_000)
    with pytest.raises(PlanError, match="the limit is"):
        Plan.load(file)


@pytest.mark.parametrize("value", [{}, {"name": "p"}, {"name": "p", "steps": [], "x": math.inf}])
def test_bad_values_are_refused(value: JsonObject) -> None:
    with pytest.raises(PlanError):
        Plan.from_dict(value)


def test_references_are_references() -> None:
    plan = Plan("p")
    for ref in (plan.inputs, plan.item, plan.index, plan.error, plan.expr("task.id")):
        assert isinstance(ref, Ref)
