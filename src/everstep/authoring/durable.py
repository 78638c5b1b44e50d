"""`@durable`: an async function whose calls are journaled steps. After a restart it goes on where it was."""

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import update_wrapper
from typing import Any, Final

from everstep.authoring.dump import dump
from everstep.authoring.durable_ctx import DurableCtx
from everstep.authoring.shape import load_fields
from everstep.authoring.signature import CONTEXT, Signature, signature_of
from everstep.authoring.tool import FunctionTool
from everstep.domain.ids import Digest
from everstep.domain.plan import InputSpec, PlanSpec
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.script import Script, Stage
from everstep.wire.plan import digest, to_json
from everstep.wire.values import canonical

NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")


class DurableFunction:
    """A decorated function: start it like a plan, or hand it to an engine among its tools."""

    __name__: str
    trusted: Final = True

    def __init__(self, function: Callable[..., Awaitable[object]], plan: PlanSpec, signature: Signature) -> None:
        self.spec = plan
        self._function = function
        self._signature = signature
        update_wrapper(self, function)

    def __call__(self, ctx: Any, /, *args: Any, **kwargs: Any) -> Awaitable[object]:  # noqa: ANN401 -- the function's own
        """The function itself, with any `ctx`: for its own tests."""
        return self._function(ctx, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<durable {self.spec.name}>"

    @property
    def digest(self) -> Digest:
        """Its name and version."""
        return digest(self.spec)

    def named(self) -> tuple[PlanSpec, Digest]:
        """The plan it stands for, whose steps are the calls it will make."""
        return self.spec, self.digest

    @property
    def tools(self) -> tuple[object, ...]:
        """What an engine needs to carry it out: itself, and the tools of its module."""
        home = getattr(self._function, "__globals__", {})
        return (self, *(value for value in home.values() if isinstance(value, FunctionTool)))

    @property
    def script(self) -> Script:
        """What the engine performs."""
        return Script(plan=self.spec, digest=self.digest, perform=self._perform)

    def to_dict(self) -> JsonObject:
        """The plan it stands for."""
        return to_json(self.spec)

    async def _perform(self, stage: Stage, inputs: JsonObject) -> JsonValue:
        given: dict[str, Any] = load_fields(inputs, self._signature.loads)
        try:
            returned = dump(await self._function(**{CONTEXT: DurableCtx(stage), **given}))
        except SystemExit as exc:
            raise RuntimeError(f"it called sys.exit({exc.code!r})") from exc
        canonical(returned)
        return returned


def durable(
    name: str | None = None, *, version: str = "1", title: str | None = None
) -> Callable[[Callable[..., Awaitable[object]]], DurableFunction]:
    """`@durable("research", version="1")` above `async def research(ctx, topic: str) -> dict`."""

    def decorate(function: Callable[..., Awaitable[object]]) -> DurableFunction:
        called = name or function.__name__.replace("_", "-")
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"@durable is for `async def` functions, not for {function!r}")
        if not NAME.fullmatch(called):
            raise TypeError(f"'{called}' is no name for a durable function: small letters, digits and -")
        signature = signature_of(function, called)
        if not signature.takes_ctx:
            raise TypeError(f"'{called}' has no parameter 'ctx': a durable function makes its calls through it")
        plan = PlanSpec(
            name=called,
            title=title,
            description=signature.description or None,
            inputs=tuple(_inputs(signature)),
            outputs={},
            durable=version,
        )
        return DurableFunction(function, plan, signature)

    if callable(name):
        raise TypeError("write @durable('name'), with the name under which its tasks go on")
    return decorate


def _inputs(signature: Signature) -> Sequence[InputSpec]:
    properties = signature.input_schema.get("properties")
    assert isinstance(properties, dict)
    required = signature.input_schema.get("required") or []
    assert isinstance(required, list)
    found = []
    for word, said in properties.items():
        assert isinstance(said, dict)
        schema = {key: value for key, value in said.items() if key != "x-everstep-kind"}
        found.append(InputSpec(name=word, schema=schema if word in required else {"default": None, **schema}))
    return found
