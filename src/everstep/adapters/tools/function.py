"""Python functions as tools: async ones inline, others in a thread.

One adapter serves one function, so that health, estimate, probe and the exceptions named in `@tool` are that
function's own.
"""

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from everstep.adapters.isolation.bounds import Walls
from everstep.adapters.isolation.process_call import call_in_process
from everstep.adapters.threads import Threads
from everstep.domain.catalogue import SAID
from everstep.domain.failure import Failure
from everstep.domain.raised import effect_of_client, failure_of, retry_after_ms, text_of
from everstep.domain.values import JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.function import Function, ProbeAnswer
from everstep.ports.tool import Call, Ctx, Health, Probed, ToolSpec

T = TypeVar("T")


class FunctionAdapter(ToolAdapter):
    """Calls one function with what its hints promise."""

    def __init__(self, function: Function, *, threads: Threads, walls: Walls | None = None) -> None:
        self._function = function
        self._walls = walls or Walls()
        self._threads = threads
        self._is_async = function.spec.isolation == "inline"
        if function.target is not None:
            setattr(self, "target", self._target)  # noqa: B010 -- else the tool itself is the target
        if function.estimate is not None:
            setattr(self, "estimate", function.estimate)  # noqa: B010 -- else there is no guess

    def tools(self) -> Sequence[ToolSpec]:
        """The one tool."""
        return (self._function.spec,)

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """Values that fit the schema but not the Python type: text that is no date, a model's own rule."""
        problems: list[tuple[str, str]] = []
        for name, load in self._function.loads:
            if name in call.arguments:
                try:
                    load(call.arguments[name])
                except (ValueError, TypeError, KeyError) as exc:
                    problems.append((f"/{name}", text_of(exc)))
        return problems

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Call it. A tool that leaves by `sys.exit` ends its call, not the engine."""
        function = self._function
        if function.spec.isolation == "process":
            return await call_in_process(function, call, ctx, self._walls)
        arguments: dict[str, Any] = call.arguments
        if function.loads:
            arguments = {
                **arguments,
                **{name: load(arguments[name]) for name, load in function.loads if name in arguments},
            }
        if function.takes_ctx:
            arguments = {**arguments, "ctx": ctx}
        try:
            if self._is_async:
                result = await function.call(**arguments)
            else:
                result = await self._threads.call(partial(function.call, **arguments), ctx.outlives)
        except SystemExit as exc:
            raise RuntimeError(f"it called sys.exit({exc.code!r})") from exc
        return result if function.dump is None else function.dump(result)

    async def close(self) -> None:
        """Processes that wait for the next call are not needed."""
        self._walls.spares.close()

    async def health(self) -> Health:
        """As the author's function finds it."""
        return Health() if self._function.health is None else await self._ask(self._function.health)

    def classify(self, exc: Exception) -> Failure | None:
        """Exceptions named in `@tool`."""
        for category, classes in self._function.named:
            if isinstance(exc, classes):
                return failure_of(
                    SAID[category],
                    text_of(exc),
                    category=category,
                    effect_state=effect_of_client(exc),
                    retry_after_ms=retry_after_ms(exc),
                )
        return None

    def degrade(self, call: Call, level: int, cause: Failure) -> Call | None:
        """As the author's function knows how."""
        return None if self._function.degrade is None else self._function.degrade(call, level, cause)

    def _target(self, call: Call) -> str:
        assert self._function.target is not None
        return str(call.arguments.get(self._function.target, call.tool))

    async def probe(self, call: Call) -> Probed:
        """As the author's function finds it."""
        if self._function.probe is None:
            return Probed(result="unknown")
        answer: ProbeAnswer = await self._ask(partial(self._function.probe, call))
        if isinstance(answer, str):
            return Probed(result=answer)
        word, output = answer
        value = cast("JsonValue", output) if self._function.dump is None else self._function.dump(output)
        return Probed(result=word, output=value)

    async def undo(self, call: Call, output: JsonValue, ctx: Ctx) -> None:
        """As the author's function does."""
        if self._function.undo is None:
            await super().undo(call, output, ctx)
        else:
            await self._ask(partial(self._function.undo, call, output, ctx))

    async def _ask(self, function: Callable[[], T | Awaitable[T]]) -> T:
        """Call an author's function that may block; a coroutine it returns is awaited here."""
        answer = await self._threads.call(function)
        return await answer if inspect.isawaitable(answer) else answer
