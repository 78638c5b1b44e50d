"""Every problem a well-shaped plan can have, with its place; the codes are those of plan-and-python, section 7."""

import pytest

from everstep.domain.check import asks, input_problems
from everstep.domain.problem import Problem, Severity, worst
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.schema import compile_schema
from tests.unit.known_tools import TOOLS, check, plan, spec, step

MAIL: JsonObject = {"to": "a@b.test", "subject": "s", "text": "t"}
GET: JsonObject = {"url": "https://example.test"}


def q(text: str) -> JsonObject:
    return {"query": text}


CASES: list[tuple[str, JsonObject, str, str, str | None]] = [
    # code, plan, path, message, suggestion
    ("bad_name", {**plan(step("a")), "name": "My Plan"}, "/name", "'My Plan' is not a plan name", "my-plan"),
    ("bad_name", plan(step("fetch-page")), "/steps/0/id", "'fetch-page' is not a step id", "fetch_page"),
    ("bad_name", plan(step("fetchPage")), "/steps/0/id", "'fetchPage' is not a step id", "fetch_page"),
    ("bad_name", plan(step("\u0430pple")), "/steps/0/id", "'\u0430pple' is not a step id", "pple"),
    ("bad_name", plan(step("a", bind="B")), "/steps/0/bind", "'B' is not a bind name", "b"),
    ("bad_name", plan(step("a"), outputs={"x y": 1}), "/outputs/x y", "'x y' is not an output name", "x_y"),
    ("bad_name", plan(step("a", "9to5")), "/steps/0/tool", "'9to5' is not a tool name", None),
    ("reserved_name", plan(step("task")), "/steps/0/id", "'task' is reserved", None),
    ("reserved_name", plan(step("a", bind="len")), "/steps/0/bind", "'len' is reserved", None),
    ("reserved_name", plan(step("not")), "/steps/0/id", "'not' is reserved", None),
    ("duplicate_id", plan(step("a"), step("a")), "/steps/1/id", "'a' is already the id at /steps/0/id", None),
    ("duplicate_id", plan(step("a", bind="b"), step("b")),
     "/steps/1/id", "'b' is already the bind at /steps/0/bind", None),
    ("bad_value", plan(), "/steps", "a plan has at least one step", None),
    ("unknown_step", plan(step("a", needs=["b"]), step("bb")), "/steps/0/needs/0", "no step 'b'", "bb"),
    ("unknown_tool", plan(step("a", "search.locl")), "/steps/0/tool", "no tool 'search.locl'", "search.local"),
    (
        "unknown_argument",
        plan(step("a", "file.write", with_={"path": "x", "text": "y", "txt": "z"})),
        "/steps/0/with/txt",
        "'file.write' has no 'txt'",
        "text",
    ),
    ("missing_argument", plan(step("a", "file.write")), "/steps/0/with", "'file.write' needs 'path' and 'text'", None),
    ("missing_argument", plan(step("a", "mail.send")),
     "/steps/0/with", "'mail.send' needs 'to', 'subject' and 'text'", None),
    (
        "bad_argument",
        plan(step("a", with_={"query": "${task.id}", "limit": "many"})),
        "/steps/0/with/limit",
        "'limit' must be an integer",
        None,
    ),
    (
        "bad_argument",
        plan(step("a", "shell.run", with_={"argv": ["git", 3]})),
        "/steps/0/with/argv/1",
        "'argv[1]' must be text",
        None,
    ),
    ("unknown_input", plan(step("a", with_=q("${inputs.topci}")), inputs={"topic": "string"}), "/steps/0/with/query",
     "no input 'topci'", "topic"),
    ("unknown_step", plan(step("page", with_=q("${steps.pge.status}"))),
     "/steps/0/with/query", "no step 'pge'", "page"),
    ("unknown_reference", plan(step("a", with_=q("${HOME}"))),
     "/steps/0/with/query", "nothing here is called 'HOME'", None),
    ("unknown_reference", plan(step("a"), step("b", with_=q("${topic}")), inputs={"topic": "string"}),
     "/steps/1/with/query", "nothing here is called 'topic'", "inputs.topic"),
    ("unknown_reference", plan(step("a", bind="hits"), step("b", with_=q("${a.indexed}"))), "/steps/1/with/query",
     "nothing here is called 'a'", "hits"),
    ("unknown_reference", plan(step("a", with_=q("${item}"))), "/steps/0/with/query",
     "'item' exists only in a step with 'for_each'", None),
    ("unknown_reference", plan(step("a", for_each="${index}")), "/steps/0/for_each",
     "'index' exists only in a step with 'for_each'", None),
    ("unknown_reference", plan(step("a", with_=q("${error.code}"))), "/steps/0/with/query",
     "'error' exists only in 'fallback' and 'finally'", None),
    ("unknown_reference", plan(step("a"), title="${a.indexed}"), "/title",
     "the title of a plan knows only 'inputs' and 'task'", None),
    ("unknown_field", plan(step("a"), step("b", with_=q("${a.indexd}"))), "/steps/1/with/query",
     "'search.local' has no output 'indexd'", "indexed"),
    ("unknown_field", plan(step("a"), step("b", with_=q("${a.results[0].titel}"))), "/steps/1/with/query",
     "there is no 'titel'", "title"),
    ("unknown_field", plan(step("a", for_each=[1]), step("b", with_=q("${a.indexed}"))), "/steps/1/with/query",
     "'a' is a list, one output per item; write a[0].indexed", None),
    ("unknown_field", plan(step("a"), step("b", for_each="${a.results}", with_=q("${item.ulr}"))),
     "/steps/1/with/query",
     "there is no 'ulr'", "url"),
    ("unknown_field", plan(step("a"), step("b", with_=q("${steps.a.state}"))), "/steps/1/with/query",
     "there is no 'state'", "status"),
    ("unknown_field", plan(step("a", with_=q("${task.name}"))),
     "/steps/0/with/query", "'task' has no output 'name'", None),
    ("unknown_field", plan(step("a", "browser.read", with_=GET, fallback=[{"tool": "http.get", "with": GET}]),
                           step("b", with_=q("${a.title}"))), "/steps/1/with/query",
     "'http.get', the fallback of 'a', has no output 'title'", None),
    ("unknown_field", plan(step("a", fallback=[{"value": {"indexed": 0}}]), step("b", with_=q("${a.results}"))),
     "/steps/1/with/query", "the value, the fallback of 'a', has no output 'results'", None),
    ("later_step", plan(step("save", with_=q("${draft.indexed}")), step("draft")), "/steps/0/with/query",
     "'draft' does not run before 'save'", None),
    ("later_step", plan(step("a", when="${default(b.indexed, 1) > 0}"), step("b")), "/steps/0/when",
     "'b' does not run before 'a'", None),
    ("later_step", plan(step("a", with_=q("${a.indexed}"))),
     "/steps/0/with/query", "'a' cannot use its own output", None),
    ("later_step", plan(step("a", with_=q("${z.path}")), finally_=[
        step("z", "file.append", with_={"path": "p", "text": "t"})]), "/steps/0/with/query",
     "'z' does not run before 'a'", None),
    ("cycle", plan(step("a", needs=["b"]), step("b")), "/steps/0/needs", "these wait for each other: a → b → a", None),
    ("cycle", plan(step("a", needs=[], with_=q("${b.indexed}")), step("b", needs=[], with_=q("${a.indexed}"))),
     "/steps/0/with/query", "these wait for each other: a → b → a", None),
    ("wrong_type", plan(step("page", "http.get", with_=GET), step("b", with_=q("${join(page.status, ',')}"))),
     "/steps/1/with/query", "'join' wants a list, 'page.status' is an integer", None),
    ("wrong_type", plan(step("a"), step("b", when="${a.indexed}")), "/steps/1/when",
     "'when' wants true or false, 'a.indexed' is an integer", None),
    ("wrong_type", plan(step("a"), step("b", for_each="${a.indexed}")), "/steps/1/for_each",
     "'for_each' wants a list, 'a.indexed' is an integer", None),
    ("bad_expression", plan(step("a", with_=q("${a.}"))), "/steps/0/with/query", "expected a name after '.'", None),
    ("bad_expression", plan(step("a", with_=q("${{ inputs.x }}"))), "/steps/0/with/query",
     "'{' does not belong here", "${inputs.x}"),
    ("unknown_function", plan(step("a"), outputs={"n": "${length(a.results)}"}),
     "/outputs/n", "no function 'length'", "len"),
    ("unsafe_binding", plan(step("a", "shell.run", with_={"argv": ["${task.id}"]})), "/steps/0/with/argv/0",
     "a binding in 'argv[0]' would choose the program, write it out", None),
    ("secret_exposed", plan(step("a", "mail.send", with_={**MAIL, "subject": "${secrets.k}"})), "/steps/0/with/subject",
     "a secret may not go into 'subject'", None),
    ("secret_exposed", plan(step("a", "mail.send", with_={**MAIL, "password": "x${secrets.k}"})),
     "/steps/0/with/password", "a secret stands alone in 'password'", None),
    ("secret_exposed", plan(step("a"), outputs={"k": "${secrets.k}"}),
     "/outputs/k", "a secret may not go into 'k'", None),
    ("secret_exposed", plan(step("a", with_=q("${inputs.k}")), inputs={"k": "secret"}), "/steps/0/with/query",
     "a secret may not go into 'query'", None),
    ("effect_raised", plan(step("a", "mail.send", with_=MAIL, effect="pure")), "/steps/0/effect",
     "'effect: pure' is less careful than the tool's 'verifiable'", None),
    ("effect_raised", plan(step("a", fallback=[{"tool": "mail.send", "with": MAIL}])), "/steps/0/fallback/0/tool",
     "'mail.send' acts as 'verifiable', more than the 'pure' it stands in for", None),
    ("too_large", plan(step("a", for_each=[0] * 10_001)), "/steps/0/for_each", "10001 items, the limit is 10000", None),
    ("bad_value", plan(step("a", resources=["docs://g/{a b}"])), "/steps/0/resources/0/uri",
     "'{a b}' is not a variable, write {name}", None),
    ("unknown_reference", plan(step("a", with_=q("${steps}"))), "/steps/0/with/query", "write steps.<id>", None),
    ("key_conflict", plan(step("a", parallel=2)), "/steps/0/parallel", "'parallel' needs 'for_each'", None),
    ("key_conflict", plan(step("a", approve={"title": "x", "within": "1h"})), "/steps/0/approve/within",
     "'within' needs 'on_timeout'", None),
    ("key_conflict", plan(step("a", approve={"title": "x", "on_timeout": "wait"})), "/steps/0/approve/on_timeout",
     "'on_timeout' needs 'within'", None),
    ("key_conflict", plan(step("a", for_each=[1], approve={"title": "x", "edit": ["query"]})), "/steps/0/approve/edit",
     "'edit' does not go with 'for_each': one question covers all items", None),
    ("key_conflict", plan(step("a"), finally_=[step("z", approve="x")]), "/finally/0/approve",
     "a step in 'finally' takes no 'approve'", None),
    ("key_conflict", plan({"id": "a", "resources": ["docs://x"], "for_each": [1]}), "/steps/0/for_each",
     "'for_each' needs a 'tool'", None),
    ("key_conflict", plan(step("a", fallback=[{"value": 1}, {"tool": "search.web", "with": q("x")}])),
     "/steps/0/fallback/0", "'value' always succeeds, so it must come last", None),
    ("key_conflict", plan(step("a", limits={"memory": "1GB"})), "/steps/0/limits/memory",
     "'memory' holds only for tools with a process of their own, not for 'search.local'", None),
    ("unknown_argument", plan(step("a", approve={"title": "x", "edit": ["qery"]})), "/steps/0/approve/edit/0",
     "'search.local' has no 'qery'", "query"),
    ("policy_denied", plan(step("a", "mail.send", with_=MAIL, approve={
        "title": "x", "within": "1h", "on_timeout": "approve"})), "/steps/0/approve/on_timeout",
     "waiting may not approve a 'verifiable' tool", None),
    ("bad_value", plan(step("a", resources=["x y"])),
     "/steps/0/resources/0/uri", "'x y' is not a resource, write scheme://…", None),
    ("bad_value", plan(step("a", resources=["docs://g/{t}"])),
     "/steps/0/resources/0/uri", "'{t}' has no value in 'vars'", None),
    ("unsafe_binding", plan(step("a", resources=["docs://${task.id}/x"])), "/steps/0/resources/0/uri",
     "a binding here would choose the server, write scheme and authority out", None),
    ("unknown_key", plan(step("a", resources=[{"uri": "docs://x", "vars": {"t": 1}}])), "/steps/0/resources/0/vars/t",
     "there is no '{t}' in the uri", None),
    ("bad_value", plan(step("a"), inputs={"x": {"type": "string", "anyOf": []}}), "/inputs/x/anyOf",
     "an input takes no 'anyOf'", None),
    ("bad_value", plan(step("a"), inputs={"x": {"type": "integer", "default": "y"}}), "/inputs/x/default",
     "the default of 'x' must be an integer", None),
]  # fmt: skip


@pytest.mark.parametrize(("code", "value", "path", "message", "suggestion"), CASES)
def test_errors(code: str, value: JsonObject, path: str, message: str, suggestion: str | None) -> None:
    errors = [problem for problem in check(value) if problem.severity is Severity.ERROR]
    assert [(problem.code, problem.path, problem.message, problem.suggestion) for problem in errors] == [
        (f"plan.{code}", path, message, suggestion)
    ]


WARNINGS: list[tuple[str, JsonObject, str, str]] = [
    ("unused_input", plan(step("a"), inputs={"to": "string"}), "/inputs/to", "input 'to' is never used"),
    ("unchecked_field", plan(step("a", "mcp.gh.find"), step("b", with_=q("${a.items}"))), "/steps/1/with/query",
     "'mcp.gh.find' describes no output"),
    ("never_runs", plan(step("a", when=False)), "/steps/0/when", "'when' is always false"),
    ("never_runs", plan(step("a", when="${1 > 2}")), "/steps/0/when", "'when' is always false"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "value", "path", "message"), WARNINGS)
def test_warnings(code: str, value: JsonObject, path: str, message: str) -> None:
    found = check(value)
    assert [(problem.code, problem.path, problem.message) for problem in found] == [(f"plan.{code}", path, message)]
    assert not worst(found)
    assert worst(found, strict=True)


GOOD: list[JsonObject] = [
    plan(step("a"), step("b", with_=q("${a.results[0].title} ${default(a.results[9].url, '')}"))),
    plan(step("a", for_each=["x"], with_=q("${item} ${index}")), step("b", with_=q("${len(a)} ${a[0].indexed}"))),
    plan(step("a"), step("b", for_each="${a.results}", with_=q("${item.url}"), when="${item.title != ''}")),
    plan(step("a", title="Before ${b.indexed}", guidance="${b.indexed}"), step("b")),
    plan(step("a", with_=q("${b.indexed}")), step("b", needs=[])),
    plan(step("a"), step("b", fallback=[{"tool": "search.local", "with": q("${error.code} ${a.indexed}")}])),
    plan(step("a", "mail.send", with_={**MAIL, "password": "${secrets.k}"})),
    plan(step("a", undo={"tool": "file.write", "with": {"path": "p", "text": "${a.indexed}"}})),
    plan({"id": "a", "resources": [{"uri": "docs://g/{t}", "vars": {"t": "${inputs.t}"}}]}, inputs={"t": "string"}),
    plan(step("a", resources=["docs://x/${a.indexed}"])),
    plan(step("a"), done_when="${a.indexed > 3}", outputs={"n": "${default(a.indexed, null)}", "k": "${z.path}"},
         finally_=[step("z", "file.append", with_={"path": "p", "text": "${error} ${a.indexed}"})]),
    plan(step("a", with_=q("${json(inputs)}")), inputs={"x": "string", "y": {"type": "integer", "default": 3}}),
    plan(step("a", "shell.run", with_={"argv": ["git", "${task.id}"]}, limits={"memory": "1GB"})),
    plan(step("a", needs=[]), step("b", needs=[]), step("c", needs=["a", "b"]), parallel=2),
    plan(step("a", fallback=[{"value": {"results": [{"url": "u"}]}}]), step("b", with_=q("${a.results[0].url}"))),
    plan(step("a", fallback=[{"tool": "mcp.gh.find"}, {"value": "${error}"}]), step("b", with_=q("${a.indexed}"))),
    plan(step("a", for_each=[1], fallback=[{"value": {"indexed": 1}}]), step("b", with_=q("${a[0].indexed}"))),
    plan(step("a", undo={"tool": "search.web", "with": q("${a.indexed}"), "approve": "Undo ${a.indexed}?"})),
    plan(step("a", fallback=[{"value": None}]), step("b", with_=q("${default(a.indexed, 0)}"))),
]  # fmt: skip


@pytest.mark.parametrize("value", GOOD)
def test_good_plans(value: JsonObject) -> None:
    assert check(value) == ()


UNTRUSTED: list[tuple[JsonObject, str]] = [
    (plan(step("a", "mail.send", with_=MAIL, on_uncertain="retry")), "/steps/0/on_uncertain"),
    (plan(step("a", "mail.send", with_=MAIL), defaults={"on_uncertain": "retry"}), "/defaults/on_uncertain"),
    (plan(step("a", approve={"title": "x", "by": "llm"})), "/steps/0/approve/by"),
    (plan(step("a", approve={"title": "x", "within": "1h", "on_timeout": "approve"})), "/steps/0/approve/on_timeout"),
    (plan(step("a"), finally_=[step("z", "mail.send", with_=MAIL)]), "/finally/0/tool"),
]


@pytest.mark.parametrize(("value", "path"), UNTRUSTED)
def test_what_only_trusted_plans_may_say(value: JsonObject, path: str) -> None:
    assert check(value) == ()
    assert [(problem.code, problem.path) for problem in check(value, trusted=False)] == [("plan.policy_denied", path)]


def test_all_at_once() -> None:
    """Shape, names, tools, bindings: one answer names them all, and no echo of one looks like another."""
    value = plan(
        step("one", "search.locl"),
        {"id": "two", "tool": "search.local", "args": {"query": "q"}},
        step("three", with_=q("${inputs.nope} ${two.indexed} ${one.x}"), retry=99),
        step("task"),
    )
    assert sorted((problem.code, problem.path) for problem in check(value)) == [
        ("plan.bad_value", "/steps/2/retry"),
        ("plan.reserved_name", "/steps/3/id"),
        ("plan.unknown_input", "/steps/2/with/query"),
        ("plan.unknown_key", "/steps/1/args"),
        ("plan.unknown_tool", "/steps/0/tool"),
    ]


def test_names_that_could_not_be_read_make_no_echo() -> None:
    value = plan({"tool": "search.local", "with": q("x")}, step("b", with_=q("${a.indexed}")))
    assert [problem.code for problem in check(value)] == ["plan.missing_key"]
    inputs = plan(step("a", with_=q("${inputs.x}")), inputs={"x": "strng"})
    assert [problem.code for problem in check(inputs)] == ["plan.bad_value"]


def test_a_tool_that_is_off_is_told_its_setting_and_not_another_tool() -> None:
    off, foreign = check(plan(step("a", "llm.chat"), step("b", "mcp.notes.shout")))
    assert (off.suggestion, off.hint) == (None, "it is there when the settings have `llm.endpoints`")
    assert (foreign.suggestion, foreign.hint) == (None, "it is there when the settings have `mcp.servers`")


def test_what_unknown_tools_give_is_not_judged() -> None:
    value = plan(step("a", "no.such"), step("b", for_each="${a.list}", with_=q("${item.x} ${a.y.z}")))
    assert [problem.code for problem in check(value)] == ["plan.unknown_tool"]
    unknown = plan(step("a", for_each="${nope}", with_=q("${item.x}")))
    assert [problem.path for problem in check(unknown)] == ["/steps/0/for_each"]


def test_a_hint_for_those_who_write_other_templates() -> None:
    (problem,) = check(plan(step("a", with_=q("{{ inputs.topic }}")), inputs={"topic": "string"}))
    assert (problem.code, problem.suggestion) == ("plan.unused_input", "${inputs.topic}")


def test_steps_that_would_ask() -> None:
    found = spec(
        plan(
            step("read"),
            step("mail", "mail.send", with_=MAIL),
            step("ticket", "ticket.open", with_={"title": "t"}),
            step("careful", effect="once"),
            step("run", "shell.run", with_={"argv": ["x"]}),
            step("again", "shell.run", with_={"argv": ["x"]}, on_uncertain="fail"),
            step("unknown", "no.such"),
            finally_=[step("last", "shell.run", with_={"argv": ["x"]})],
        )
    )
    assert asks(found, TOOLS) == ("mail", "careful", "run", "unknown")


INPUTS: JsonObject = {
    "topic": "string",
    "n": {"type": "integer", "minimum": 1},
    "list": {"type": "array", "items": {"type": "string"}, "default": []},
    "key": "secret",
}


def found_in(inputs: dict[str, JsonValue]) -> list[tuple[str, str, str]]:
    problems: tuple[Problem, ...] = input_problems(spec(plan(step("a"), inputs=INPUTS)), inputs, compile_schema)
    return [(problem.code, problem.path, problem.message) for problem in problems]


def test_inputs() -> None:
    assert found_in({"topic": "x", "n": 3, "key": "name"}) == []
    assert found_in({"topci": "x", "n": 0, "list": ["a", 1], "key": 5}) == [
        ("input.unknown", "/inputs/topci", "this plan has no input 'topci'"),
        ("input.missing", "/inputs/topic", "input 'topic' is missing"),
        ("input.invalid", "/inputs/n", "'n' must be at least 1"),
        ("input.invalid", "/inputs/list/1", "'list.1' must be text"),
        ("input.invalid", "/inputs/key", "'key' must be text"),
    ]
