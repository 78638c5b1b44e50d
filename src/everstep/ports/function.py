"""A Python function as a tool: what `authoring` makes of it once, and `adapters/tools/function` serves."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

from everstep.domain.failure import Category, Failure
from everstep.domain.record import record
from everstep.domain.values import JsonValue
from everstep.ports.tool import Call, Ctx, Health, Prior, ToolSpec

Load: TypeAlias = Callable[[Any], object]
"""A JSON value that fits its schema -> the Python value the hint promises; ValueError or TypeError if there is none."""
ProbeAnswer: TypeAlias = Literal["not_done", "unknown"] | tuple[Literal["done"], object]
"""What a probe function says; with `done` comes the output the call would have returned."""
Named: TypeAlias = tuple[tuple[Category, tuple[type[Exception], ...]], ...]
"""Exception classes that mean a category, in the order they are tried."""


@record
class Function:
    """Everything a call needs, worked out when the function was decorated."""

    spec: ToolSpec
    call: Callable[..., Any]
    takes_ctx: bool
    loads: tuple[tuple[str, Load], ...]
    """Arguments whose Python value differs from the JSON value."""
    dump: Callable[[object], JsonValue] | None
    """Result -> JSON; None: the result is JSON already."""
    named: Named = ()
    probe: Callable[[Call], ProbeAnswer | Awaitable[ProbeAnswer]] | None = None
    estimate: Callable[[Call], Prior | None] | None = None
    health: Callable[[], Health | Awaitable[Health]] | None = None
    undo: Callable[[Call, JsonValue, Ctx], object] | None = None
    """Takes a call back, given its output; may be async."""
    degrade: Callable[[Call, int, Failure], Call | None] | None = None
    target: str | None = None
    """The argument that names the breaker's target."""
