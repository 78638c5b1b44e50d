"""`@tool`: what becomes of a signature, of options, and what is refused at import."""

import functools
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, cast

import pytest

from everstep.authoring.shape import Arg
from everstep.authoring.tool import FunctionTool, tool
from everstep.domain.failure import Category
from everstep.domain.plan import Effect
from everstep.ports.tool import Call, Ctx, Health, Prior


@dataclass
class Page:
    text: str


@tool("web.read", effect="pure", timeout="30s", retry=2, title="Read a page", trusted_output=True)
async def read(
    url: Annotated[str, Arg("Page to read", kind="checked", format="uri")],
    mode: Literal["text", "markdown"] = "text",
    *,
    ctx: Ctx,
) -> Page:
    """Open a page and return its readable text."""
    return Page(f"{mode} of {url} for {ctx.step_id}")


def test_the_example_of_the_guide() -> None:
    spec = read.spec
    assert (spec.name, spec.title, spec.effect) == ("web.read", "Read a page", Effect.PURE)
    assert (spec.timeout_ms, spec.retries, spec.trusted_output, spec.isolation) == (30_000, 2, True, "inline")
    assert spec.description == "Open a page and return its readable text."
    assert spec.input_schema == {
        "type": "object",
        "properties": {
            "url": {"x-everstep-kind": "checked", "type": "string", "description": "Page to read", "format": "uri"},
            "mode": {
                "x-everstep-kind": "opaque",
                "enum": ["text", "markdown"],
                "type": "string",
                "default": "text",
            },
        },
        "additionalProperties": False,
        "required": ["url"],
    }
    assert spec.output_schema == {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "additionalProperties": False,
        "required": ["text"],
    }
    assert read.served.takes_ctx
    assert read.served.loads == ()


def test_a_decorated_function_is_still_the_function() -> None:
    @tool
    def double(n: int) -> int:
        """Twice as much."""
        return n * 2

    assert double(4) == 8
    assert double.__name__ == "double"
    assert double.__doc__ == "Twice as much."
    assert repr(double) == f"<tool {double.spec.name}>"
    assert double.spec.isolation == "thread"


def test_spellings_of_the_decorator() -> None:
    def work(n: int) -> int:
        return n

    spelled: list[tuple[FunctionTool[..., int], Effect, str]] = [
        (tool(work), Effect.ONCE, f"{__name__}.work"),
        (tool()(work), Effect.ONCE, f"{__name__}.work"),
        (tool("a.b")(work), Effect.ONCE, "a.b"),
        (tool(effect="pure")(work), Effect.PURE, f"{__name__}.work"),
        (tool.pure(work), Effect.PURE, f"{__name__}.work"),
        (tool.pure()(work), Effect.PURE, f"{__name__}.work"),
        (tool.pure("a.b", timeout="1s")(work), Effect.PURE, "a.b"),
        (tool.idempotent(work), Effect.IDEMPOTENT, f"{__name__}.work"),
        (tool.idempotent("a.b")(work), Effect.IDEMPOTENT, "a.b"),
    ]
    for made, effect, name in spelled:
        assert (made.spec.effect, made.spec.name) == (effect, name)


def test_no_return_hint_means_unchecked() -> None:
    @tool("a.b")
    def work(n: int):  # type: ignore[no-untyped-def] # noqa: ANN202
        return n

    assert work.spec.output_schema is None
    assert work.served.dump is not None


def test_the_version_follows_the_schemas() -> None:
    def make(hint: object) -> str:
        def work(n: object) -> None: ...

        work.__annotations__["n"] = hint
        return tool("a.b")(work).spec.version

    assert make(int) == make(int)
    assert make(int) != make(str)
    assert tool("a.b", version="2.1.0")(lambda: None).spec.version == "2.1.0"


def test_a_script_gives_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None: ...

    monkeypatch.setattr(work, "__module__", "__main__")
    assert tool(work).spec.name == "test_tool.work"
    code = compile("def work() -> None: ...", "<stdin>", "exec")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(code, names)  # what a prompt does
    assert tool(cast("Callable[[], None]", names["work"])).spec.name == "main.work"


def test_a_wrapped_function_is_read_through() -> None:
    def logged(function: Callable[[int], int]) -> Callable[[int], int]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> int:
            return function(*args, **kwargs)

        return inner

    @tool("a.b")
    @logged
    def work(n: int) -> int:
        return n + 1

    assert work(1) == 2
    assert work.spec.input_schema["required"] == ["n"]


def test_a_context_hint_need_not_be_importable() -> None:
    def work(n: int, ctx: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821

    assert tool("a.b")(work).served.takes_ctx


def test_functions_and_classes_named_in_options() -> None:
    def probe(_call: Call) -> Literal["unknown"]:
        return "unknown"

    def estimate(_call: Call) -> Prior:
        return Prior(p10_s=1, p50_s=2, p90_s=3)

    def health() -> Health:
        return Health(status="healthy")

    made = tool(
        "a.b",
        effect="verifiable",
        probe=probe,
        estimate=estimate,
        health=health,
        transient=(OSError,),
        configuration=(KeyError, LookupError),
    )(lambda: None)
    assert made.spec.probeable
    assert made.served.named == (
        (Category.TRANSIENT, (OSError,)),
        (Category.CONFIGURATION, (KeyError, LookupError)),
    )
    assert (made.served.probe, made.served.estimate, made.served.health) == (probe, estimate, health)


def test_converted_arguments_are_known_beforehand() -> None:
    @tool("a.b")
    def work(at: datetime, n: int, page: Page) -> None: ...

    assert [name for name, _ in work.served.loads] == ["at", "page"]
    assert work.served.dump is None


def unhinted(n) -> None: ...  # type: ignore[no-untyped-def] # noqa: ANN001


def starred(*parts: str) -> None: ...


def keywords(**parts: str) -> None: ...


def positional(n: int, /) -> None: ...


def forgotten(n: "Missing") -> None: ...  # type: ignore[name-defined] # noqa: F821


def unsupported(n: bytes) -> None: ...


def bad_result() -> bytes:
    return b""


async def stream() -> AsyncIterator[int]:
    yield 1


class Thing:
    def method(self, n: int) -> None: ...

    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (unhinted, "tool 'a.b', parameter 'n': has no type hint; write n: str"),
        (starred, "parameter 'parts': .* instead of \\*args"),
        (keywords, "parameter 'parts': .* instead of \\*\\*kwargs"),
        (positional, "parameter 'n': .* remove the /"),
        (forgotten, "tool 'a.b': the hint 'Missing' cannot be looked up"),
        (unsupported, "parameter 'n': the hint bytes has no JSON form; use str, or Artifact"),
        (bad_result, "result: the hint bytes has no JSON form"),
        (Thing.method, "parameter 'self': has no type hint"),
        (stream, "@tool is for functions"),
        (Thing(), "@tool is for functions"),
        (len, "@tool is for functions"),
    ],
)
def test_what_could_not_work_is_refused_at_import(function: Callable[..., object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tool("a.b")(function)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.b", {"effect": "harmless"}, "no effect 'harmless'; there are pure, idempotent, verifiable, once"),
        ("a.b", {"effect": "verifiable"}, "needs probe="),
        ("a.b", {"timeout": "30 sec"}, "'30 sec' is not a duration"),
        ("a.b", {"timout": "30s"}, r"no option 'timout' here \(did you mean 'timeout'\?\)"),
        ("a.b", {"pool": "a browser"}, "pool='a browser' is not a name"),
        ("a.b", {"transient": ("OSError",)}, "transient= takes a tuple of exception classes"),
        ("a.b", {"transient": OSError}, "transient= takes a tuple of exception classes"),
        ("a.b", {"permission": (BaseException,)}, "permission= takes a tuple of exception classes"),
        ("a b", {}, "'a b' is not a tool name"),
        ("a..b", {}, "'a..b' is not a tool name"),
        ("a." + "b" * 128, {}, "is not a tool name"),
    ],
)
def test_bad_options_are_refused_at_import(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tool(name, **options)(lambda: None)


def test_the_effect_of_pure_is_fixed() -> None:
    with pytest.raises(TypeError, match="no option 'effect'"):
        tool.pure("a.b", effect="once")
