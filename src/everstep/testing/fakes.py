"""`fake(…)`: a tool that does as the test says and remembers every call. Real schemas stay in force."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, NoReturn, TypeAlias, TypeVar

from everstep.domain.failure import Failure
from everstep.domain.ids import Instant
from everstep.domain.plan import Effect
from everstep.domain.quantities import parse_duration
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter as SafeAdapter
from everstep.ports.clock import Clock
from everstep.ports.tool import Call, Ctx, Deferred, Health, Listening, Prior, Probed, Subplan, ToolAdapter, ToolSpec

T = TypeVar("T")

Raised: TypeAlias = BaseException | type[BaseException] | None
Seen: TypeAlias = Literal["done", "not_done", "unknown"]

OPEN: Final[JsonObject] = {"type": "object"}
"""The schema of a fake that stands for no real tool."""


@record
class MadeCall:
    """One call, as the fake saw it."""

    arguments: JsonObject
    key: str
    attempt: int


class Fake:
    """What a fake does, call by call, and what was asked of it. It outlives the engine, as the world does."""

    def __init__(
        self, returns: Sequence[JsonValue], raises: Sequence[Raised], delay: Sequence[int], probe: Sequence[Seen]
    ) -> None:
        self.effect: Effect | None = None
        self.calls: list[MadeCall] = []
        self.made: dict[str, JsonValue] = {}
        """Key -> output of every call that got as far as its effect."""
        self._returns, self._raises, self._delay, self._probe = self.orders = returns, raises, delay, probe
        self._looks = 0

    @property
    def count(self) -> int:
        """How often it was called."""
        return len(self.calls)

    async def call(self, call: Call, ctx: Ctx, clock: Clock) -> JsonValue:
        """Do as ordered for the n-th call."""
        self.calls.append(MadeCall(arguments=call.arguments, key=call.idempotency_key, attempt=ctx.attempt))
        turn = len(self.calls) - 1
        if self._delay:
            await clock.sleep_until(Instant(clock.now() + _of_turn(self._delay, turn)))
        error = _of_turn(self._raises, turn)
        if error is not None:
            raise error
        output = _of_turn(self._returns, turn)
        self.made[call.idempotency_key] = output
        return output

    def look(self, call: Call) -> Probed:
        """As ordered, else from the record."""
        made = call.idempotency_key in self.made
        said: Seen = _of_turn(self._probe, self._looks) if self._probe else ("done" if made else "not_done")
        self._looks += 1
        if said != "done":
            return Probed(result=said)
        output = self.made.get(call.idempotency_key, _of_turn(self._returns, len(self.calls)))
        return Probed(result="done", output=output)


def fake(
    *,
    returns: JsonValue = None,
    raises: Raised | list[Raised] = None,
    delay: str | list[str] | None = None,
    effect: str | None = None,
    probe: Seen | list[Seen] | None = None,
) -> Fake:
    """A fake tool. Lists go call by call and their last entry repeats; in `raises`, None means success."""
    delays = [] if delay is None else [_millis(length) for length in _turns(delay)]
    made = Fake(_turns(returns), _turns(raises), delays, _turns(probe) if probe else ())
    made.effect = None if effect is None else Effect(effect)
    return made


class FakedTools:
    """A family with some of its tools faked: specs and argument checks are the real ones, calls are not."""

    def __init__(self, real: ToolAdapter, fakes: Mapping[str, Fake], *, clock: Clock) -> None:
        self._real = real
        self._fakes = fakes
        self._clock = clock

    def tools(self) -> Sequence[ToolSpec]:
        """The real ones, with the effects that the fakes claim."""
        return [_as_faked(spec, self._fakes.get(spec.name)) for spec in self._real.tools()]

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue | Deferred | Listening | Subplan:
        """The fake's call, or the real one."""
        found = self._fakes.get(call.tool)
        return await (self._real.execute(call, ctx) if found is None else found.call(call, ctx, self._clock))

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """As the real one."""
        return self._real.validate(call)

    def estimate(self, call: Call) -> Prior | None:
        """As the real one."""
        return self._real.estimate(call)

    async def health(self) -> Health:
        """Fakes are always well."""
        return Health(status="healthy")

    def classify(self, exc: Exception) -> Failure | None:
        """As the real one."""
        return self._real.classify(exc)

    async def probe(self, call: Call) -> Probed:
        """The fake's record, or the real look."""
        found = self._fakes.get(call.tool)
        return await self._real.probe(call) if found is None else found.look(call)

    def degrade(self, call: Call, level: int, cause: Failure) -> Call | None:
        """As the real one."""
        return self._real.degrade(call, level, cause)

    def target(self, call: Call) -> str:
        """As the real one."""
        return self._real.target(call)

    def counts(self, call: Call) -> Sequence[tuple[str, str]]:
        """As the real one."""
        return self._real.counts(call)

    def scruple(self, call: Call) -> str | None:
        """As the real one."""
        return self._real.scruple(call)

    async def close(self) -> None:
        """As the real one."""
        await self._real.close()

    def effect_of(self, call: Call) -> Effect | None:
        """What the fake claims, else as the real one."""
        found = self._fakes.get(call.tool)
        return self._real.effect_of(call) if found is None or found.effect is None else found.effect


class Unserved(SafeAdapter):
    """Tools that only exist as fakes: they take any arguments."""

    def __init__(self, names: Iterable[str]) -> None:
        self._specs = tuple(
            ToolSpec(name=name, version="fake", title=name, description="", input_schema=OPEN) for name in names
        )

    def tools(self) -> Sequence[ToolSpec]:
        """One per name."""
        return self._specs

    async def execute(self, call: Call, ctx: Ctx) -> NoReturn:  # noqa: ARG002 -- never called
        """Nothing is behind these names."""
        raise AssertionError(f"{call.tool} is only a fake")


def with_fakes(adapters: Iterable[ToolAdapter], fakes: Mapping[str, Fake], *, clock: Clock) -> list[ToolAdapter]:
    """These adapters with fakes in the place of the tools of the same name, and the other fakes beside them."""
    faked: list[ToolAdapter] = []
    known: set[str] = set()
    for adapter in adapters:
        names = {spec.name for spec in adapter.tools()}
        known |= names
        mine = {name: one for name, one in fakes.items() if name in names}
        faked.append(FakedTools(adapter, mine, clock=clock) if mine else adapter)
    others = {name: one for name, one in fakes.items() if name not in known}
    if others:
        faked.append(FakedTools(Unserved(others), others, clock=clock))
    return faked


def _as_faked(spec: ToolSpec, found: Fake | None) -> ToolSpec:
    if found is None:
        return spec
    return replace(spec, effect=found.effect or spec.effect, probeable=True, rate=None)  # nobody is reached


def _turns(value: T | list[T]) -> list[T]:
    """A list goes call by call; anything else is for every call."""
    return value if isinstance(value, list) else [value]


def _of_turn(turns: Sequence[T], turn: int) -> T:
    return turns[min(turn, len(turns) - 1)]


def _millis(length: str) -> int:
    millis = parse_duration(length)
    if millis is None:
        raise ValueError(f"'{length}' is not a duration, write 500ms, 30s, 1h30m")
    return millis
