"""Tools: what a step may call. The contract of an adapter, and what a tool author may say.

Only `engine/invoke.py` calls `execute`, and only with an Intent in hand.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from everstep.domain import estimate
from everstep.domain.failure import EffectState, Failure
from everstep.domain.ids import Digest, Instant, Millis, StepPath, TaskId
from everstep.domain.plan import Effect, LimitsSpec, PlanSpec
from everstep.domain.record import hot_record, record
from everstep.domain.usage import Measured
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.lasting import Lasting

Isolation: TypeAlias = Literal["inline", "thread", "process"]
Prior: TypeAlias = estimate.Prior
CACHE: Final = "cache"
"""The argument that asks for a new result, of a tool whose results are kept."""


@record
class ToolSpec:
    """What the engine knows of a tool. It knows none by name."""

    name: str
    version: str
    title: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    effect: Effect = Effect.ONCE
    isolation: Isolation = "inline"
    timeout_ms: Millis | None = None
    retries: int | None = None
    step_timeout_ms: Millis | None = None
    breaker: str | None = None
    trusted_output: bool = False
    probeable: bool = False
    undoable: bool = False
    approve: bool = False
    """Ask before every call; a plan may only add."""
    pool: str | None = None
    """So many calls at the same time, together with other tools of this pool."""
    permissions: tuple[str, ...] = ()
    """What it needs: `net.http`, `fs.write`, …"""
    rate: str | None = None
    """`10/1s`, or the name of a provider that the settings give a rate; `name.*`: every target is one, and what follows
    is its usual rate: `search.* 30/1m:10`."""
    cache_ttl_ms: Millis | None = None
    """How long a result of a pure call may be given again; the argument `cache: off` asks for a new one."""
    prior: Prior | None = None
    """What a call takes before there is history, if all are alike; else the adapter's `estimate` says."""


@hot_record
class Call:
    """One call, as an adapter sees it: resolved arguments, the effect in force, the key."""

    tool: str
    arguments: JsonObject
    effect: Effect = Effect.ONCE
    idempotency_key: str = ""


@record
class Health:
    """Can the tool be used?"""

    status: Literal["healthy", "degraded", "unhealthy", "unknown"] = "unknown"
    detail: str = ""
    latency_s: float | None = None
    unwell: Mapping[str, str] = field(default_factory=dict)
    """Where only some targets of its calls cannot be used: which, and why."""


class Log(Protocol):
    """Lines of one attempt; not journaled."""

    def info(self, text: str, **fields: JsonValue) -> None:
        """Worth knowing."""

    def warning(self, text: str, **fields: JsonValue) -> None:
        """Worth a look."""


@record
class Origin:
    """Who wrote the arguments of a call: what stands in a trusted plan may reach more than what data filled in."""

    trusted: bool = False
    """Whether the plan is one that somebody of this place vouches for."""
    written: Mapping[str, JsonValue] = field(default_factory=dict)
    """The arguments as the plan spells them, bindings and all; not those that an answer gave."""


@runtime_checkable
class Ctx(Lasting, Protocol):
    """What a running call may know and say."""

    @property
    def task_id(self) -> TaskId: ...
    @property
    def step_id(self) -> StepPath: ...
    @property
    def attempt(self) -> int: ...
    @property
    def owner(self) -> str: ...
    @property
    def workdir(self) -> Path: ...
    @property
    def idempotency_key(self) -> str: ...
    @property
    def answer(self) -> JsonValue: ...
    @property
    def deadline(self) -> datetime: ...
    @property
    def cancelled(self) -> bool: ...
    @property
    def log(self) -> Log: ...
    @property
    def origin(self) -> Origin: ...
    @property
    def bounds(self) -> LimitsSpec | None: ...
    @property
    def left(self) -> LimitsSpec: ...

    def now(self) -> Instant:
        """The engine's clock."""

    def remaining(self) -> float:
        """Seconds until the deadline."""

    async def wait_cancelled(self) -> None:
        """Returns when the call should end."""

    def progress(self, fraction: float, text: str | None = None) -> None:
        """Volatile: shown, never stored."""

    def stream(self, text: str) -> None:
        """Text as it comes, for whoever watches: volatile, never stored; what counts is what the call returns."""

    def usage(
        self,
        cost: float | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        **counts: float | None,
    ) -> None:
        """Adds to what this attempt used; kept for failed ones too, and `cost` counts for `limits.cost`."""

    def measured(self, used: Measured) -> None:
        """For adapters: what a process of this call used, and what held it."""

    def outlives(self) -> Callable[[], None]:
        """For adapters: the work goes on although nobody waits for it. Call what is returned when it has ended."""


class Judge(Protocol):
    """What an adapter knows of trouble with its tools."""

    def classify(self, exc: Exception) -> Failure | None:
        """What an exception of this family means; None: the shared table decides."""

    async def probe(self, call: Call) -> "Probed":
        """Reads only: did this call happen?"""

    def degrade(self, call: Call, level: int, cause: Failure) -> Call | None:
        """The same with strictly less work, level 1, then 2; pure. None: there is no such rung."""

    def target(self, call: Call) -> str:
        """Whom the call goes to: calls to one target share a breaker; pure."""

    def counts(self, call: Call) -> Sequence[tuple[str, str]]:
        """Further rates that a call counts for, as (family, one of it): `("mail.to", "ana@example.test")`; pure."""

    def scruple(self, call: Call) -> str | None:
        """Of a tool that asks: why this call does, or "": it need not be asked about. None: as always; pure."""


class ToolAdapter(Judge, Protocol):
    """A family of tools. `everstep.ToolAdapter` gives safe defaults for all but `tools` and `execute`."""

    def tools(self) -> Sequence[ToolSpec]:
        """What it serves; no I/O."""

    async def execute(self, call: Call, ctx: Ctx) -> "JsonValue | Deferred | Listening | Subplan":
        """Once per attempt, after the durable intent."""

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """Problems beyond the schema, as (JSON Pointer, message); pure."""

    def estimate(self, call: Call) -> Prior | None:
        """A prior; pure."""

    async def health(self) -> Health:
        """No effect, at most 5 s."""

    def effect_of(self, call: Call) -> Effect | None:
        """The effect of this very call; None: the spec's."""

    async def close(self) -> None:
        """The engine stops: let go of connections and processes."""


@runtime_checkable
class Undoer(Protocol):
    """A family that can take calls back, beside being a ToolAdapter; its specs say which."""

    async def undo(self, call: Call, output: JsonValue, ctx: Ctx) -> None:
        """Take back what this call, which gave this output, has done."""


@record
class Probed:
    """What a look at the world said about an interrupted call; with `done` comes what it would have returned."""

    result: Literal["done", "not_done", "unknown"]
    output: JsonValue = None


@record
class Deferred:
    """Returned by `execute`: a durable wait. The step completes with `output` at `until`; nothing is in flight."""

    until: Instant
    output: JsonValue


@record
class Listening:
    """Returned by `execute`: a durable wait for a signal. The step completes with it; past `until` it fails."""

    event: str
    key: str | None
    """None: the task's id, or a signal without a key."""
    until: Instant | None


@record
class Subplan:
    """Returned by `execute`: a task of its own. The step waits for its end; nothing is in flight meanwhile."""

    plan: PlanSpec
    digest: Digest
    inputs: JsonObject
    published: bool
    """Whether the operator's configuration offers it by name, to whoever asks."""
    written: bool = False
    """Whether it stands in the plan of the step as it is, and is no value from elsewhere."""


@runtime_checkable
class Serving(Protocol):
    """A family that reads resources."""

    def schemes(self) -> Collection[str]:
        """The beginnings of the addresses it can read, without `://`."""


class ToolError(Exception):
    """What a tool raises to say what went wrong; in a durable function, what a call raises that failed for good.

    Of a tool's nothing leaves `engine/classify.py`.
    """

    category = "internal"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        what_to_do: str | None = None,
        details: JsonObject | None = None,
        effect_state: str = EffectState.NONE,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.what_to_do = what_to_do
        self.details = details
        self.effect_state = EffectState(effect_state)
        self.retry_after: str | float | None = None


class Transient(ToolError):
    """Try again later."""

    category = "transient"

    def __init__(self, message: str, *, retry_after: str | float | None = None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class Uncertain(ToolError):
    """Nobody knows whether it happened."""

    category = "transient"

    def __init__(self, message: str, *, code: str | None = None, details: JsonObject | None = None) -> None:
        super().__init__(message, code=code, details=details, effect_state=EffectState.UNKNOWN)


class Misconfigured(ToolError):
    """The arguments or the set-up are wrong."""

    category = "configuration"


class Denied(ToolError):
    """Access is refused; `refresh` may renew the credential."""

    category = "permission"

    def __init__(
        self,
        message: str,
        *,
        refresh: Callable[[], Awaitable[None]] | None = None,
        code: str | None = None,
        what_to_do: str | None = None,
        details: JsonObject | None = None,
    ) -> None:
        super().__init__(message, code=code, what_to_do=what_to_do, details=details)
        self.refresh = refresh


LIMIT_CODES: Final = {"cpu_time": "limit_cpu"}
"""Limits whose code is not made of their name."""


class ResourceExceeded(ToolError):
    """A limit was reached."""

    category = "resource"

    def __init__(self, message: str, *, limit: str, used: float, max: float, remote: bool = False) -> None:
        details: JsonObject = {"limit": limit, "used": used, "max": max, **({"remote": True} if remote else {})}
        super().__init__(message, code=LIMIT_CODES.get(limit, f"limit_{limit}"), details=details)


class Impossible(ToolError):
    """Contradictory, or impossible for the current state."""

    category = "logic"


class NeedsInput(ToolError):
    """Ask someone, then call again with `ctx.answer`."""

    def __init__(self, question: str, schema: JsonObject | None = None, *, by: str = "anyone") -> None:
        super().__init__(question)
        self.schema = schema
        self.by = by
        """Who may answer: `human`, `llm` (or a human), `anyone`."""
