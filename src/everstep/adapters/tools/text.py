"""`text.*`: small, pure, deterministic. None of it asks the world anything."""

import hashlib
from typing import Final

from everstep.adapters.tools.family import Small, SmallTools, closed, spec_of
from everstep.adapters.tools.summary import TEXTS, summarize
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import ResourceExceeded

DIFF_LINES_MAX: Final = 2_000
"""Comparing takes the square of this in the worst case, and the event loop waits for it."""
ALGORITHMS: Final = ("sha256", "sha512", "sha1", "md5", "blake2b")

_TEXT: Final[JsonObject] = {"type": "string"}


def text_tools() -> SmallTools:
    """The family."""
    return SmallTools(_TOOLS)


def _join(texts: list[str], separator: str = "\n") -> JsonValue:
    return {"text": separator.join(texts)}


def _split(text: str, separator: str = "\n", *, trim: bool = False) -> JsonValue:
    parts = text.split(separator)
    return {"parts": [part.strip() for part in parts if part.strip()] if trim else list(parts)}


def _truncate(text: str, chars: int, ending: str = "…") -> JsonValue:
    if len(text) <= chars:
        return {"text": text, "truncated": False}
    return {"text": text[: max(0, chars - len(ending))] + ending[:chars], "truncated": True}


def _diff(old: str, new: str, context: int = 3) -> JsonValue:
    import difflib

    before, after = old.splitlines(), new.splitlines()
    lines = max(len(before), len(after))
    if lines > DIFF_LINES_MAX:
        raise ResourceExceeded(f"a text has {lines} lines", limit="lines", used=lines, max=DIFF_LINES_MAX)
    changes = difflib.unified_diff(before, after, "old", "new", n=context, lineterm="")
    return {"diff": "\n".join(changes), "changed": old != new}


def _hash(text: str, algorithm: str = "sha256") -> JsonValue:
    digest = hashlib.new(algorithm, text.encode(), usedforsecurity=False)
    return {"hash": digest.hexdigest(), "algorithm": algorithm}


_TOOLS: Final = (
    Small(
        spec=spec_of(
            "text.join",
            "Join texts",
            "Put texts together, with a separator between them.",
            takes={
                "texts": {"type": "array", "items": _TEXT, "description": "The texts, in order"},
                "separator": {"type": "string", "default": "\n", "description": "What stands between them"},
            },
            needs=("texts",),
            gives=closed({"text": _TEXT}),
        ),
        does=_join,
    ),
    Small(
        spec=spec_of(
            "text.split",
            "Split a text",
            "Cut a text into parts at a separator.",
            takes={
                "text": {"type": "string", "description": "The text to cut"},
                "separator": {"type": "string", "minLength": 1, "default": "\n", "description": "Where to cut"},
                "trim": {
                    "type": "boolean",
                    "default": False,
                    "description": "Remove space around the parts, and leave empty ones out",
                },
            },
            needs=("text",),
            gives=closed({"parts": {"type": "array", "items": _TEXT}}),
        ),
        does=_split,
    ),
    Small(
        spec=spec_of(
            "text.truncate",
            "Shorten a text",
            "Cut a text so that it has at most so many characters, its ending included.",
            takes={
                "text": {"type": "string", "description": "The text to shorten"},
                "chars": {"type": "integer", "minimum": 0, "description": "The most characters the result may have"},
                "ending": {"type": "string", "default": "…", "description": "Put at the end of a text that was cut"},
            },
            needs=("text", "chars"),
            gives=closed({"text": _TEXT, "truncated": {"type": "boolean"}}),
        ),
        does=_truncate,
    ),
    Small(
        spec=spec_of(
            "text.diff",
            "Compare two texts",
            f"The difference between two texts line by line, as a unified diff; up to {DIFF_LINES_MAX} lines each.",
            takes={
                "old": {"type": "string", "description": "The text before"},
                "new": {"type": "string", "description": "The text after"},
                "context": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": DIFF_LINES_MAX,
                    "default": 3,
                    "description": "Equal lines shown around each change",
                },
            },
            needs=("old", "new"),
            gives=closed({"diff": _TEXT, "changed": {"type": "boolean"}}),
        ),
        does=_diff,
    ),
    Small(
        spec=spec_of(
            "text.hash",
            "Hash a text",
            "The hash of a text's UTF-8 bytes, in hexadecimal.",
            takes={
                "text": {"type": "string", "description": "The text"},
                "algorithm": {"enum": list(ALGORITHMS), "default": "sha256", "description": "How to hash"},
            },
            needs=("text",),
            gives=closed({"hash": _TEXT, "algorithm": _TEXT}),
        ),
        does=_hash,
    ),
    Small(
        spec=spec_of(
            "text.summarize",
            "Summarize texts",
            "The most telling sentences of some texts, word for word and in their order. The same texts always give "
            "the same sentences; no model is asked.",
            takes={
                "texts": TEXTS,
                "sentences": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 100,
                    "default": 5,
                    "description": "How many sentences to keep",
                },
            },
            needs=("texts",),
            gives=closed(
                {
                    "text": _TEXT,
                    "markdown": _TEXT,
                    "sources": {
                        "type": "array",
                        "items": closed(
                            {
                                "index": {"type": "integer"},
                                "title": {"type": ["string", "null"]},
                                "url": {"type": ["string", "null"]},
                            }
                        ),
                    },
                }
            ),
        ),
        does=summarize,
    ),
)
