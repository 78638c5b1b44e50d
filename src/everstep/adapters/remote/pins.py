"""What a server said of its tools when the operator last agreed. A definition that differs from it is not called.

Descriptions and schemas steer models and pass arguments on: a server that changes them afterwards is another tool.
"""

import json
import unicodedata
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from everstep.domain.canonical import canonical_text
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject, JsonValue

FIELDS: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
SHOWN_CHARS: Final = 1_000
_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs"})


def definition_of(tool: JsonObject) -> JsonObject:
    """What counts of a tool as its server lists it."""
    return {field: tool[field] for field in FIELDS if tool.get(field) is not None}


def digest_of(definition: JsonObject) -> str:
    """The name of exactly this definition."""
    return sha256(canonical_text(definition).encode()).hexdigest()


def hint(definition: Mapping[str, JsonValue], name: str) -> bool:
    """Whether the server claims so."""
    annotations = definition.get("annotations")
    return isinstance(annotations, dict) and annotations.get(name) is True


def proposed(definition: Mapping[str, JsonValue]) -> tuple[Effect, str]:
    """The effect that a server's hints speak for, and why."""
    if hint(definition, "readOnlyHint"):
        return Effect.PURE, "the server says it only reads"
    if hint(definition, "idempotentHint"):
        return Effect.IDEMPOTENT, "the server says a repeat changes nothing more"
    return Effect.ONCE, "the server promises nothing"


def shown(text: JsonValue) -> str:
    """A stranger's words, without anything that hides or moves them."""
    plain = "".join(
        character if unicodedata.category(character) not in _HIDDEN else " "
        for character in (text if isinstance(text, str) else "")[: SHOWN_CHARS * 4]
    )
    return " ".join(plain.split())[:SHOWN_CHARS]


class Pins:
    """One server's definitions, in a file of ours."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, JsonObject]:
        """By tool; none if nobody has agreed to any yet, or the file is not ours any more."""
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        tools = kept.get("tools") if isinstance(kept, dict) else None
        found = tools if isinstance(tools, list) else []
        return {str(one["name"]): one for one in found if isinstance(one, dict) and "name" in one}

    def write(self, definitions: Iterable[JsonObject]) -> None:
        """From now on these; the file is there as a whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        tools = sorted(definitions, key=lambda one: str(one["name"]))
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"version": 1, "tools": tools}, indent=1) + "\n", encoding="utf-8")
        new.replace(self.path)
