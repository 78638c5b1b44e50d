"""`@tool`: a Python function as a tool, still callable as the function it is.

Everything is worked out here, once: schemas, conversions, the spec. What a call then costs is decided by
`adapters/tools/function`.
"""

import inspect
import re
from collections.abc import Awaitable, Callable
from functools import update_wrapper
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Generic, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

from everstep.authoring.signature import Signature, signature_of
from everstep.domain.canonical import canonical_text
from everstep.domain.failure import Category, Failure
from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.quantities import parse_duration
from everstep.domain.rate import parse_rate
from everstep.domain.suggest import did_you_mean, suggest
from everstep.domain.values import JsonValue
from everstep.ports.function import Function, Named, ProbeAnswer
from everstep.ports.tool import Call, Ctx, Health, Isolation, Prior, ToolSpec

P = ParamSpec("P")
R = TypeVar("R")

TIMEOUT_MS: Final = Millis(600_000)
"""What a function gets when nobody says: it may be a person's whole script."""
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*")
NAME_CHARS_MAX: Final = 128
PLACE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,127}")


class ToolOptions(TypedDict, total=False):
    """What `@tool` takes besides the name."""

    title: str
    version: str
    effect: str
    probe: Callable[[Call], ProbeAnswer | Awaitable[ProbeAnswer]]
    estimate: Callable[[Call], Prior | None]
    health: Callable[[], Health | Awaitable[Health]]
    undo: Callable[[Call, JsonValue, Ctx], object]
    degrade: Callable[[Call, int, Failure], Call | None]
    timeout: str
    step_timeout: str
    retry: int
    breaker: str
    target: str
    transient: tuple[type[Exception], ...]
    permission: tuple[type[Exception], ...]
    configuration: tuple[type[Exception], ...]
    trusted_output: bool
    approve: bool
    pool: str
    rate: str
    isolate: str
    permissions: tuple[str, ...]
    cache_ttl: str


class FunctionTool(Generic[P, R]):
    """A decorated function: call it as before, or hand it to an engine or a plan."""

    __name__: str

    def __init__(self, function: Callable[P, R], served: Function) -> None:
        self.served = served
        self._function = function
        update_wrapper(self, function)

    @property
    def spec(self) -> ToolSpec:
        """What the engine knows of it."""
        return self.served.spec

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.spec.name}>"


class ToolDecorator:
    """`@tool`, `@tool("name")`, `@tool("name", effect="pure")`; with a fixed effect `@tool.pure`."""

    def __init__(self, effect: Effect | None = None) -> None:
        self._effect = effect

    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionTool[P, R]: ...
    @overload
    def __call__(
        self, name: str | None = None, /, **options: Unpack[ToolOptions]
    ) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
    def __call__(
        self, subject: Callable[P, R] | str | None = None, /, **options: Unpack[ToolOptions]
    ) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
        check_options(options, effect_is_said=self._effect is not None)
        if self._effect is not None:
            options["effect"] = self._effect
        if callable(subject):
            return make(subject, None, options)
        return lambda function: make(function, subject, options)

    @property
    def pure(self) -> "ToolDecorator":
        """Calling it again changes nothing."""
        return ToolDecorator(Effect.PURE)

    @property
    def idempotent(self) -> "ToolDecorator":
        """Calling it again with the same key changes nothing more."""
        return ToolDecorator(Effect.IDEMPOTENT)


def check_options(options: ToolOptions, *, effect_is_said: bool = False) -> None:
    """TypeError for an option that nobody knows."""
    known = [name for name in ToolOptions.__annotations__ if name != "effect" or not effect_is_said]
    for name in options:
        if name not in known:
            raise TypeError(did_you_mean(f"@tool has no option '{name}' here", suggest(name, known)))


tool: Final = ToolDecorator()


def make(function: Callable[P, R], name: str | None, options: ToolOptions) -> FunctionTool[P, R]:
    """Read the function once; TypeError for whatever could not work later."""
    if not inspect.isfunction(inspect.unwrap(function)) or inspect.isasyncgenfunction(function):
        raise TypeError(f"@tool is for functions, not for {function!r}")
    name = name or default_name(function)
    return serve(function, name, signature_of(function, name), options)


def serve(function: Callable[P, R], name: str, signature: Signature, options: ToolOptions) -> FunctionTool[P, R]:
    """A function under this name, called as its signature says."""
    if not NAME.fullmatch(name) or len(name) > NAME_CHARS_MAX:
        raise TypeError(f"'{name}' is not a tool name; name it as in @tool('family.verb')")
    served = Function(
        spec=_spec(function, name, signature, options),
        call=function,
        takes_ctx=signature.takes_ctx,
        loads=signature.loads,
        dump=signature.dump,
        named=_named(name, options),
        probe=options.get("probe"),
        estimate=options.get("estimate"),
        health=options.get("health"),
        undo=options.get("undo"),
        degrade=options.get("degrade"),
        target=_target(name, signature, options.get("target")),
    )
    return FunctionTool(function, served)


def default_name(function: Callable[..., object]) -> str:
    """`<module>.<function>`; of a script its file's name, since its module is `__main__`."""
    module = function.__module__
    if module == "__main__":
        stem = Path(inspect.unwrap(function).__code__.co_filename).stem
        module = stem if NAME.fullmatch(stem) else "main"
    return f"{module}.{function.__name__}"


def _spec(function: Callable[..., object], name: str, signature: Signature, options: ToolOptions) -> ToolSpec:
    return ToolSpec(
        name=name,
        version=options.get("version") or _version(signature),
        title=options.get("title") or name,
        description=signature.description,
        input_schema=signature.input_schema,
        output_schema=signature.output_schema,
        effect=_effect(name, options),
        isolation=_isolation(function, name, options),
        permissions=tuple(options.get("permissions", ())),
        timeout_ms=_timeout(name, options.get("timeout")) or TIMEOUT_MS,
        step_timeout_ms=_timeout(name, options.get("step_timeout")),
        cache_ttl_ms=_cache_ttl(name, options),
        retries=options.get("retry"),
        breaker=options.get("breaker"),
        trusted_output=options.get("trusted_output", False),
        probeable="probe" in options,
        undoable="undo" in options,
        approve=options.get("approve", False),
        pool=_named_place(name, "pool", options.get("pool")),
        rate=_named_place(name, "rate", options.get("rate")),
    )


def _isolation(function: Callable[..., object], name: str, options: ToolOptions) -> Isolation:
    """A process of its own must be able to import the function."""
    said = options.get("isolate")
    if said is None:
        return "inline" if inspect.iscoroutinefunction(function) else "thread"
    if said != "process":
        raise TypeError(f"tool '{name}': isolate='{said}' is not 'process'")
    if "<locals>" in function.__qualname__:
        raise TypeError(f"tool '{name}': isolate='process' needs a function of a module, not one made inside another")
    return "process"


def _version(signature: Signature) -> str:
    schemas = canonical_text({"input": signature.input_schema, "output": signature.output_schema})
    return f"schema-{sha256(schemas.encode()).hexdigest()[:12]}"


def _effect(name: str, options: ToolOptions) -> Effect:
    word = options.get("effect", Effect.ONCE)
    if word not in list(Effect):
        raise TypeError(f"tool '{name}': no effect '{word}'; there are {', '.join(Effect)}")
    if word == Effect.VERIFIABLE and "probe" not in options:
        raise TypeError(f"tool '{name}': effect='verifiable' needs probe=, a function that looks whether it happened")
    return Effect(word)


def _timeout(name: str, text: str | None) -> Millis | None:
    length = None if text is None else parse_duration(text)
    if length is None and text is not None:
        raise TypeError(f"tool '{name}': '{text}' is not a duration, write 500ms, 30s, 1h30m")
    return length


def _cache_ttl(name: str, options: ToolOptions) -> Millis | None:
    if "cache_ttl" in options and options.get("effect") != Effect.PURE:
        raise TypeError(f"tool '{name}': cache_ttl= is for tools whose effect is 'pure'")
    return _timeout(name, options.get("cache_ttl"))


def _target(name: str, signature: Signature, argument: str | None) -> str | None:
    known = signature.input_schema.get("properties")
    assert isinstance(known, dict)
    if argument is not None and argument not in known:
        raise TypeError(did_you_mean(f"tool '{name}': target= names no argument", suggest(argument, [*known])))
    return argument


def _named_place(name: str, option: str, said: str | None) -> str | None:
    """A pool or a provider by its name; a rate may also be written out."""
    written_out = option == "rate" and said is not None and parse_rate(said) is not None
    if said is None or written_out or PLACE.fullmatch(said):
        return said
    wanted = "a name, or as 10/1s" if option == "rate" else "a name"
    raise TypeError(f"tool '{name}': {option}='{said}' is not {wanted}")


def _named(name: str, options: ToolOptions) -> Named:
    named: list[tuple[Category, tuple[type[Exception], ...]]] = []
    for category in (Category.TRANSIENT, Category.PERMISSION, Category.CONFIGURATION):
        classes = cast("dict[str, Any]", options).get(category, ())
        if not isinstance(classes, tuple) or not all(_is_exception(cls) for cls in classes):
            raise TypeError(f"tool '{name}': {category}= takes a tuple of exception classes")
        if classes:
            named.append((category, classes))
    return tuple(named)


def _is_exception(cls: object) -> bool:
    return isinstance(cls, type) and issubclass(cls, Exception)
