"""What the checker must know of a tool. The engine's catalog says it; here it is only used."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.pointer import child, parent
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue

Violation: TypeAlias = tuple[str, str]
"""JSON Pointer and message."""


class ArgumentKind(StrEnum):
    """What a value may become in its place: the place decides, not the value."""

    LITERAL = "literal"
    """Chooses a program, a host key: stands in the plan, never bound."""
    CHECKED = "checked"
    """A path, a URL, an address: parsed, then policy."""
    OPAQUE = "opaque"
    """Text."""
    SECRET = "secret"  # noqa: S105 -- the name of a kind
    """The name of a secret."""


def _accept(arguments: JsonObject) -> Sequence[Violation]:  # noqa: ARG001 -- stands in for a validator
    return ()


@record
class ToolFacts:
    """One tool, as far as a plan can be wrong about it."""

    name: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    effect: Effect = Effect.ONCE
    timeout_ms: Millis | None = None
    validate: Callable[[JsonObject], Sequence[Violation]] = _accept
    kinds: Mapping[str, ArgumentKind] | None = None
    """JSON Pointer of an argument → kind; the nearest entry at or above a place holds. None: as the schema says."""
    probeable: bool = False
    """An interrupted call can be looked up, so a `verifiable` effect need not ask."""
    killable: bool = False
    """It is a process of its own, the only kind on which limits of memory and CPU time hold."""
    permissions: tuple[str, ...] = ()
    trusted_output: bool = False
    """What it returns is its own word."""
    steerable: Mapping[str, ArgumentKind] | None = None
    """Kinds of its arguments where data from outside is asked about; None: it never is."""


_KINDS: Final = {kind.value: kind for kind in ArgumentKind}


def kinds_of(input_schema: JsonObject, default: ArgumentKind = ArgumentKind.OPAQUE) -> dict[str, ArgumentKind]:
    """The kinds that a schema declares with `x-everstep-kind`; every item of a list is `*` unless it has its own."""
    kinds = {"": default}
    pending: list[tuple[str, JsonValue]] = [("", input_schema)]
    while pending:
        pointer, schema = pending.pop()
        if not isinstance(schema, dict):
            continue
        if isinstance(said := schema.get("x-everstep-kind"), str) and said in _KINDS:
            kinds[pointer] = _KINDS[said]
        if isinstance(properties := schema.get("properties"), dict):
            pending += [(child(pointer, name), inner) for name, inner in properties.items()]
        if isinstance(firsts := schema.get("prefixItems"), list):
            pending += [(child(pointer, at), inner) for at, inner in enumerate(firsts)]
        for word in ("items", "additionalProperties"):
            if isinstance(every := schema.get(word), dict):
                pending.append((child(pointer, "*"), every))
    return kinds


def kind_at(kinds: Mapping[str, ArgumentKind], pointer: str) -> ArgumentKind:
    """What the value at `pointer` may become."""
    while True:
        above = parent(pointer)
        kind = kinds.get(pointer) or (kinds.get(child(above, "*")) if pointer else None)
        if kind is not None:
            return kind
        if not pointer:
            return ArgumentKind.OPAQUE
        pointer = above
