"""Tools by name, each with its validators compiled once."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from typing import Final

from everstep.domain.coerce import coerce
from everstep.domain.consent import NO_RULES, STEERING, Asks, Consent
from everstep.domain.errors import SettingsError
from everstep.domain.facts import ArgumentKind, ToolFacts, kinds_of
from everstep.domain.plan import Effect, StepSpec
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue, Sealed
from everstep.engine.passage import Allowance
from everstep.ports.adapter import ToolAdapter as SafeAdapter
from everstep.ports.codec import Codec, Validator
from everstep.ports.secrets import NoSecrets, Secrets
from everstep.ports.tool import CACHE, Call, Prior, Serving, ToolAdapter, ToolError, ToolSpec, Undoer

CANNOT_GUESS: Final = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    ToolError,
)
"""What a guess about arguments that nobody has checked may raise."""


_NEW: Final[JsonObject] = {"enum": ["off"], "description": "off: a new result, whatever is kept"}


@record
class Entry:
    """A tool, who serves it, and how its values are checked."""

    spec: ToolSpec
    adapter: ToolAdapter
    check_input: Validator
    check_output: Validator | None
    required: frozenset[str]
    family: str
    """The first tool of the family it belongs to."""
    targeted: bool
    """Whether its calls go to several targets; else the tool itself is the target."""
    counted: bool = False
    """Whether its calls count for further rates."""
    scrupulous: bool = False
    """Whether it says of each call if it is to be asked about."""
    secrets: tuple[str, ...] = ()
    """JSON Pointers of arguments that hold the name of a secret."""
    asks: Asks = ""
    """Whether it asks before every call, and on whose word."""
    steerable: Mapping[str, ArgumentKind] | None = None
    """The kinds of its arguments, if some of them decide what it reaches and data from outside may not."""

    asks_for_new: bool = False
    """Whether `cache: off` is the engine's own word here, which the tool does not know."""

    def call(self, arguments: JsonObject) -> Call:
        """A call of this tool, to be asked about."""
        return Call(tool=self.spec.name, arguments=arguments)

    def missing(self, arguments: JsonObject) -> tuple[str, ...]:
        """All required arguments that are not there, and required fields inside those that are: `a.b`."""
        return tuple(sorted(lacking(self.spec.input_schema, arguments)))

    def problems(self, call: Call, *, partly: bool = False) -> Sequence[tuple[str, str]]:
        """What is wrong with arguments: all the schema says, and what the family says of those that fit it.

        `partly`: some are still to come, so nothing is said of what is not there.
        """
        found = self.check_input(call.arguments)
        return [*found, *self._also(call, found)] if found or partly else self.adapter.validate(call)

    def _also(self, call: Call, found: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """What the family says of arguments that the schema has nothing against."""
        bad = {_argument(pointer) for pointer, _ in found}
        rest = {name: value for name, value in call.arguments.items() if name not in bad}
        with suppress(*CANNOT_GUESS):
            more = self.adapter.validate(self.call(rest))
            yield from ((pointer, message) for pointer, message in more if _argument(pointer) in rest)

    def fitted(self, arguments: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
        """The arguments with what was written in another type and means the same; and which of them those were."""
        fitted, places = coerce(self.spec.input_schema, arguments)
        assert isinstance(fitted, dict)
        return fitted, places

    def target(self, call: Call) -> str:
        """Whom the call goes to; the tool itself, unless its calls go to several."""
        return self.adapter.target(call) if self.targeted else self.spec.name

    def further(self, call: Call) -> Sequence[tuple[str, str]]:
        """Rates that the call counts for beside its provider's."""
        return self.adapter.counts(call) if self.counted else ()

    def effect_of(self, call: Call, step: StepSpec) -> Effect:
        """The more careful of what the tool says of this call and what the plan says."""
        declared = self.adapter.effect_of(call) or self.spec.effect
        if step.effect is not None and step.effect.care > declared.care:
            return step.effect
        return declared


@record
class Checked:
    """A call's arguments, validated and sealed, with the effect in force."""

    input: Sealed
    effect: Effect
    entry: Entry
    coerced: tuple[str, ...] = ()
    """Arguments that were written in another type."""
    gated: bool = False
    """Whether something stands before the call: a pool, a rate."""
    allowance: Allowance | None = None
    """Its provider, and how often it may be called."""
    steered: str | None = None
    """The argument in which data from outside would decide what is reached."""


def _properties(spec: ToolSpec) -> JsonObject:
    found = spec.input_schema.get("properties")
    return found if isinstance(found, dict) else {}


class Catalog:
    """What this engine can call."""

    def __init__(
        self,
        adapters: Iterable[ToolAdapter],
        codec: Codec,
        consent: Consent = NO_RULES,
        secrets: Secrets | None = None,
    ) -> None:
        self.secrets: Secrets = secrets or NoSecrets()
        self.redactor = self.secrets.redactor
        """Takes their values out of whatever tools say."""
        self._entries: dict[str, Entry] = {}
        self._consent = consent
        self._adapters = tuple(adapters)
        for adapter in self._adapters:
            for spec in adapter.tools():
                self._add(spec, adapter, codec)
        self.families = {
            entry.family: entry.adapter for entry in self._entries.values() if _says(entry.adapter, "health")
        }
        """Those that can say how they are, by their first tool."""
        self.names = frozenset(self._entries)
        self.facts = {name: facts_of(entry) for name, entry in self._entries.items()}
        self.pools = frozenset(entry.spec.pool for entry in self._entries.values() if entry.spec.pool is not None)
        """What the plan check knows of the tools."""
        self.sized = frozenset(name for name, entry in self._entries.items() if _says(entry.adapter, "estimate"))
        """Tools whose calls may differ in size, as their adapters say."""

    def _add(self, spec: ToolSpec, adapter: ToolAdapter, codec: Codec) -> None:
        if spec.name in self._entries:
            raise SettingsError(f"two tools are called '{spec.name}'", what_to_do="rename or remove one of them")
        asks_for_new = spec.cache_ttl_ms is not None and CACHE not in _properties(spec)
        if asks_for_new:
            said: JsonObject = {**_properties(spec), CACHE: _NEW}
            spec = replace(spec, input_schema={**spec.input_schema, "properties": said})
        required = spec.input_schema.get("required") or []
        assert isinstance(required, list)
        kinds = kinds_of(spec.input_schema)
        self._entries[spec.name] = Entry(
            spec=spec,
            adapter=adapter,
            check_input=codec.validator(spec.input_schema),
            check_output=None if spec.output_schema is None else codec.validator(spec.output_schema),
            required=frozenset(str(name) for name in required),
            secrets=tuple(at for at, kind in kinds.items() if kind == "secret" and at),
            family=adapter.tools()[0].name,
            targeted=_says(adapter, "target"),
            counted=_says(adapter, "counts"),
            scrupulous=_says(adapter, "scruple"),
            asks=self._consent.asks(spec.name, by_itself=spec.approve),
            steerable=self._steerable(spec, kinds),
            asks_for_new=asks_for_new,
        )

    def _steerable(self, spec: ToolSpec, kinds: Mapping[str, ArgumentKind]) -> Mapping[str, ArgumentKind] | None:
        lifted = spec.name in self._consent.allow_untrusted
        return None if lifted or STEERING.isdisjoint(kinds.values()) else kinds

    @property
    def schemes(self) -> frozenset[str]:
        """Resources that can be read here, by the beginnings of their addresses."""
        return frozenset(one for adapter in self._adapters if isinstance(adapter, Serving) for one in adapter.schemes())

    def find(self, name: str) -> Entry | None:
        """The tool of that name, if it is installed here."""
        return self._entries.get(name)

    def has_all(self, names: frozenset[str]) -> bool:
        """Whether every one of these tools is installed here."""
        return names <= self._entries.keys()

    def get(self, name: str | None) -> Entry:
        """The tool of that name. A task is only walked where all its tools are, so a miss is our bug."""
        assert name is not None
        return self._entries[name]

    def entries(self) -> Sequence[Entry]:
        """All tools, by name."""
        return [self._entries[name] for name in sorted(self._entries)]

    def prior(self, tool: str, arguments: JsonValue) -> Prior | None:
        """What is guessed of a call. A guess that cannot be made, or is none, is no guess."""
        entry = self._entries.get(tool)
        if entry is None or (tool in self.sized and not isinstance(arguments, dict)):
            return None
        prior = entry.spec.prior
        if tool in self.sized:
            assert isinstance(arguments, dict)
            try:
                prior = entry.adapter.estimate(entry.call(arguments)) or prior
            except CANNOT_GUESS:
                return prior
        return prior if isinstance(prior, Prior) and 0 <= prior.p10_s <= prior.p50_s <= prior.p90_s < inf else None

    async def close(self) -> Sequence[tuple[Exception, str]]:
        """Every family lets go of what it holds; one that cannot keeps no other from it: why, and its tools."""
        ends = await asyncio.gather(*map(_let_go, self._adapters), return_exceptions=True)
        closed = zip(ends, self._adapters, strict=True)
        return [(end, ", ".join(_names(adapter))) for end, adapter in closed if isinstance(end, Exception)]

    def undoes(self, name: str) -> bool:
        """Whether the family of this tool can take a call of it back."""
        found = self._entries.get(name)
        return found is not None and found.spec.undoable and isinstance(found.adapter, Undoer)

    def effect_of(self, step: StepSpec) -> Effect:
        """The effect of a step as far as its plan tells: the more careful of the tool's and the step's."""
        found = self.find(step.tool or "")
        declared = Effect.ONCE if found is None else found.spec.effect
        return step.effect if step.effect is not None and step.effect.care > declared.care else declared


async def _let_go(adapter: ToolAdapter) -> None:
    """As a task of its own: whatever `close` is or raises is theirs."""
    await adapter.close()


def _names(adapter: ToolAdapter) -> list[str]:
    return [spec.name for spec in adapter.tools()]


def _argument(pointer: str) -> str:
    """The argument that a JSON Pointer leads into."""
    return pointer[1:].partition("/")[0].replace("~1", "/").replace("~0", "~")


def _says(adapter: ToolAdapter, what: str) -> bool:
    """Whether a family has an answer of its own."""
    own = getattr(type(adapter), what, None)
    return what in vars(adapter) or (own is not None and own is not getattr(SafeAdapter, what))


def lacking(schema: JsonObject, value: JsonObject, prefix: str = "") -> Iterator[str]:
    """Required fields of a schema that a value does not have. Null is there."""
    required, properties = schema.get("required"), schema.get("properties")
    for name in required if isinstance(required, list) else ():
        if name not in value:
            yield f"{prefix}{name}"
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        field = value.get(name)
        if isinstance(inner, dict) and isinstance(field, dict):
            yield from lacking(inner, field, f"{prefix}{name}.")


def facts_of(entry: Entry) -> ToolFacts:
    """A tool as the plan check sees it."""
    spec = entry.spec
    return ToolFacts(
        name=spec.name,
        input_schema=spec.input_schema,
        output_schema=spec.output_schema,
        effect=spec.effect,
        probeable=spec.probeable,
        killable=spec.isolation == "process",
        validate=partial(_judge, entry),
        permissions=spec.permissions,
        trusted_output=spec.trusted_output,
        steerable=entry.steerable,
    )


def _judge(entry: Entry, arguments: JsonObject) -> Sequence[tuple[str, str]]:
    """What the schema and the family have against arguments, however losslessly they are read."""
    return entry.problems(entry.call(entry.fitted(arguments)[0]), partly=True)
