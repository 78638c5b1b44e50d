"""What an adapter says of itself: specs, health, what its exceptions mean."""

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Final

from everstep.domain.catalogue import ERROR_CODES
from everstep.domain.failure import Failure
from everstep.domain.values import JsonValue
from everstep.ports.tool import ToolSpec, Transient, Uncertain
from everstep.testing.conformance.sample import Bench

HEALTH_S: Final = 5.0
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*")


async def specs(bench: Bench) -> Sequence[str]:
    """Names, texts and schemas."""
    listed = list(bench.adapter.tools())
    problems = [] if listed else ["it serves no tool"]
    if [*bench.adapter.tools()] != listed:
        problems.append("tools() says something else when asked again")
    for spec in listed:
        problems += [f"{spec.name}: {problem}" for problem in _spec(bench, spec)]
    return problems


def _spec(bench: Bench, spec: ToolSpec) -> list[str]:
    problems = []
    if not NAME.fullmatch(spec.name) or len(spec.name) > 128:
        problems.append("the name is not segments joined by '.'")
    problems += [f"it has no {word}" for word in ("title", "description", "version") if not getattr(spec, word)]
    for which, schema in (("input", spec.input_schema), ("output", spec.output_schema)):
        if schema is None:
            continue
        if _has_remote(schema):
            problems.append(f"the {which} schema refers to another document")
        try:
            bench.codec.validator(schema)
        except ValueError as error:
            problems.append(f"the {which} schema is none: {error}")
    if spec.input_schema.get("type") != "object" or spec.input_schema.get("additionalProperties") is not False:
        problems.append("the input schema must be an object that takes no other arguments")
    return problems


def _has_remote(schema: JsonValue) -> bool:
    if isinstance(schema, dict):
        ref = schema.get("$ref")
        return (isinstance(ref, str) and not ref.startswith("#")) or any(map(_has_remote, schema.values()))
    return isinstance(schema, list) and any(map(_has_remote, schema))


EXCEPTIONS: Final[tuple[Exception, ...]] = (
    Exception(),
    ValueError("x" * 10_000),
    KeyError("\ud800"),
    OSError(28, "No space left on device"),
    ConnectionResetError(),
    TimeoutError(),
    MemoryError(),
    RecursionError(),
    Transient("later"),
    Uncertain("who knows"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
)


async def classify(bench: Bench) -> Sequence[str]:
    """Any exception gets an answer: a Failure, or None for the shared table."""
    problems = []
    for exc in EXCEPTIONS:
        try:
            said: object = bench.adapter.classify(exc)
        except Exception as error:  # noqa: BLE001 -- that is what is looked for
            problems.append(f"classify({exc!r:.60}) raised {error!r:.60}")
            continue
        if said is not None and not isinstance(said, Failure):
            problems.append(f"classify({exc!r:.60}) gave {said!r:.60}")
    return problems


async def codes(bench: Bench) -> Sequence[str]:
    """What it calls failures must be explained somewhere: in the catalogue, or by itself."""
    said = [] if await classify(bench) else [bench.adapter.classify(exc) for exc in EXCEPTIONS]
    return [
        f"'{one.code}' has no message or says not what to do"
        for one in said
        if one is not None and one.code not in ERROR_CODES and not (one.message and one.what_to_do)
    ]


async def health(bench: Bench) -> Sequence[str]:
    """An answer within five seconds that changes nothing."""
    before, began = bench.tree(), time.monotonic()
    try:
        async with asyncio.timeout(HEALTH_S):
            await bench.adapter.health()
    except Exception as error:  # noqa: BLE001 -- that is what is looked for
        return [f"health() raised {error!r:.80} after {time.monotonic() - began:.1f} s"]
    return [] if bench.tree() == before else ["health() changed files"]
