"""Waiting and asking."""

import pytest

from everstep.adapters.tools.flow import FlowTools
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Deferred, NeedsInput
from everstep.wire.schema import compile_schema
from everstep.wire.values import Codec
from tests.unit.contexts import NOW, call_of, context

TOOLS = FlowTools(Codec())
WAIT, ASK = TOOLS.tools()


async def test_waiting_for_a_while_ends_at_a_stored_instant() -> None:
    result = await TOOLS.execute(call_of("wait", {"for": "1h30m"}), context())
    assert isinstance(result, Deferred)
    assert result.until == NOW + 90 * 60_000
    assert result.output == {"until": "2027-01-15T09:30:00.000Z"}
    assert WAIT.output_schema is not None
    assert compile_schema(WAIT.output_schema)(result.output) == []


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-31T12:00:00Z", 1_769_860_800_000),
        ("2026-01-31T12:00:00.250+02:00", 1_769_853_600_250),
        ("1990-01-01T00:00:00Z", 631_152_000_000),
    ],
)
async def test_waiting_until(text: str, at: int) -> None:
    result = await TOOLS.execute(call_of("wait", {"until": text}), context())
    assert isinstance(result, Deferred)
    assert result.until == at


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({}, ""),
        ({"for": "1s", "until": "2026-01-31T12:00:00Z"}, ""),
        ({"for": "30 sec"}, "/for"),
        ({"for": "400d"}, "/for"),
        ({"until": "tomorrow"}, "/until"),
        ({"until": "2026-01-31T12:00:00"}, "/until"),
        ({"until": "2026-01-31T12:00:60Z"}, "/until"),
    ],
)
def test_a_wait_that_cannot_be_read_is_a_problem(arguments: JsonObject, path: str) -> None:
    assert [where for where, _ in TOOLS.validate(call_of("wait", arguments))] == [path]


@pytest.mark.parametrize("arguments", [{"for": "1ms"}, {"until": "2026-01-31T12:00:00Z"}])
def test_a_good_wait_has_no_problems(arguments: JsonObject) -> None:
    assert TOOLS.validate(call_of("wait", arguments)) == ()
    assert compile_schema(WAIT.input_schema)(arguments) == []


async def test_a_question_is_asked_until_there_is_an_answer() -> None:
    call = call_of("ask", {"question": "To whom?"})
    with pytest.raises(NeedsInput, match=r"^To whom\?$") as asked:
        await TOOLS.execute(call, context())
    assert asked.value.schema == {"type": "string"}
    assert await TOOLS.execute(call, context(answer="Ana")) == "Ana"


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ("integer", 3, "three"),
        ("boolean", False, 0),
        ({"type": "object", "required": ["to"]}, {"to": "Ana"}, {}),
        ({"enum": ["a", "b"]}, "b", "c"),
    ],
)
async def test_an_answer_that_does_not_fit_is_asked_for_again(
    schema: JsonValue, good: JsonValue, bad: JsonValue
) -> None:
    call = call_of("ask", {"question": "What?", "schema": schema})
    assert TOOLS.validate(call) == ()
    assert compile_schema(ASK.input_schema)(call.arguments) == []
    assert await TOOLS.execute(call, context(answer=good)) == good
    with pytest.raises(NeedsInput, match=r"^What\? \(not usable: "):
        await TOOLS.execute(call, context(answer=bad))


def test_a_schema_must_be_one() -> None:
    bad = call_of("ask", {"question": "What?", "schema": {"type": "intger"}})
    assert [where for where, _ in TOOLS.validate(bad)] == ["/schema"]
    assert compile_schema(ASK.input_schema)({"question": "What?", "schema": "intger"}) != []
