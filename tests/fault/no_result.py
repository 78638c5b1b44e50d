"""Values that are no JSON: tools that return them, and texts from outside that only look like it.

    python -m tests.fault.no_result               20,000 of them, into the results
    python -m tests.fault.no_result --all 1000    so many

A tool that breaks its promise fails with `invalid_result`, and the task goes on. A text is read if it is strict JSON in
the eyes of a second reader that is made of Python's own, and refused as `NotJson` if not; never anything else.
"""

import argparse
import asyncio
import contextlib
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Final

from everstep import Plan, tool
from everstep.domain.values import DEPTH_MAX, INTEGER_MAX, NotJson
from everstep.testing import TestEngine
from everstep.torture.results import Line, Results, verdict
from everstep.wire.values import canonical, loads_strict

ALL, CHUNK = 20_000, 1_000
DEEP = 200_000
LARGE_BYTES = 100_000_000
LARGE_EVERY = 500
"""What is large takes its time, so there is little of it."""


def nested(depth: int, *, objects: bool) -> Any:
    """One in another."""
    value: Any = 0
    for _ in range(depth):
        value = {"a": value} if objects else [value]
    return value


def doubled(chance: random.Random) -> Any:
    """Not deep, and not large, but for who follows every path."""
    value: Any = [chance.choice([0, (), "a"])]
    for _ in range(DEPTH_MAX - 10):
        value = [value, value]
    return value


def cycle(*, objects: bool) -> Any:
    """What holds itself."""
    value: Any = {} if objects else []
    if objects:
        value["again"] = value
    else:
        value.append(value)
    return value


KINDS: Final[dict[str, Callable[[random.Random], Any]]] = {
    "nan": lambda _: math.nan,
    "infinite": lambda chance: chance.choice([math.inf, -math.inf, float("1e400")]),
    "too large": lambda chance: chance.choice([1, -1]) * (2**63 + chance.randrange(-2, 3)),
    "just too large": lambda chance: chance.choice([1, -1]) * (INTEGER_MAX + 1 + chance.randrange(3)),
    "digits": lambda _: int("7" * 4_000) * 10**1_000,
    "deep": lambda chance: nested(chance.choice([DEPTH_MAX + 1, 1_000, DEEP]), objects=chance.random() < 0.5),
    "cycle": lambda chance: cycle(objects=chance.random() < 0.5),
    "key": lambda chance: {chance.choice([1, None, True, 1.5, b"a", (1,)]): 0},
    "surrogate": lambda chance: "x" * chance.randrange(3) + chr(chance.randrange(0xD800, 0xE000)),
    "surrogate key": lambda chance: {chr(chance.randrange(0xD800, 0xE000)): 0},
    "bytes": lambda chance: chance.randbytes(3),
    "foreign": lambda chance: chance.choice(
        [{1}, object(), 1j, Decimal("1.5"), Fraction(1, 3), range(2), print, KeyError("a"), bytearray(2)]
    ),
}  # fmt: skip


def hostile(seed: int) -> Any:
    """Something that is no JSON, somewhere inside something that is."""
    chance = random.Random(seed)
    if seed % LARGE_EVERY == 0:
        return {"text": "x" * LARGE_BYTES} if seed % (2 * LARGE_EVERY) else doubled(chance)
    value = KINDS[chance.choice([*KINDS])](chance)
    for _ in range(chance.randrange(5)):
        value = {"a": 1, "b": value} if chance.random() < 0.5 else [None, value, "c"]
    return value


@tool.pure("trial.hostile")
async def returned(n: int) -> Any:
    """No result."""
    return hostile(n)


async def through_an_engine(first: int, count: int) -> list[str]:
    """A step for each, on one task; how those ended that did not fail as they should."""
    each: dict[str, Any] = {
        "id": "a",
        "tool": "trial.hostile",
        "for_each": [*range(first, first + count)],
        "with": {"n": "${item}"},
        "on_error": "continue",
        "parallel": 20,
    }
    async with TestEngine([returned]) as engine:
        task = await engine.start(Plan.from_dict({"name": "hostile", "steps": [each]}))
        ended = await task.result()
        errors: list[Any] = [
            event.data["error"] async for event in task.events() if event.type == "step.failed" and event.step != "a"
        ]
        failed = Counter(error["code"] for error in errors)
    wrong = [] if ended.status == "completed" else [f"the task {first} ended as {ended.status}"]
    if failed != {"invalid_result": count}:
        wrong.append(f"{count} from {first} on ended as {dict(failed)}")
    return wrong


# --- texts ---

ALPHABET = '[]{}",:\\01e9E-+.tfn ulNaIy\x00\x1f\ufeff\ud800é/'


def text_of(seed: int) -> str:
    """JSON with a few wrong characters."""
    chance = random.Random(f"text {seed}")
    if seed % LARGE_EVERY == 0:
        return '"' + "x" * LARGE_BYTES
    text = json.dumps(ordinary(chance, 0))
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(text) + 1)
        text = (
            text[:at] + chance.choice(ALPHABET) * chance.choice((0, 1, 1, 2, 5_000)) + text[at + chance.randrange(2) :]
        )
    return text


def ordinary(chance: random.Random, depth: int) -> Any:
    """A value."""
    kind = chance.randrange(7 if depth < 4 else 5)
    match kind:
        case 5:
            return [ordinary(chance, depth + 1) for _ in range(chance.randrange(4))]
        case 6:
            return {chance.choice("abcé"): ordinary(chance, depth + 1) for _ in range(chance.randrange(4))}
        case _:
            return (None, True, chance.randrange(-(2**54), 2**54), chance.random() * 10 ** chance.randrange(300), "té")[
                kind
            ]


def read_twice(seed: int) -> str | None:
    """What is wrong with how a text is read, beside a second reader."""
    text = text_of(seed)
    expected: Any = NotJson
    with contextlib.suppress(ValueError, RecursionError):
        expected = second_reader(text)
    try:
        value = loads_strict(text)
    except NotJson:
        return None if expected is NotJson else f"text {seed} was refused"
    if expected is NotJson or canonical(value) != canonical(expected):
        return f"text {seed} was read as {value!r:.80}"
    return None


def second_reader(text: str) -> Any:
    """Python's own, made strict by other means."""
    text.encode()
    value = json.loads(text, object_pairs_hook=without_repeats, parse_constant=int, parse_int=small, parse_float=finite)
    if depth_of(value) > DEPTH_MAX:
        raise ValueError("deep")
    json.dumps(value, ensure_ascii=False).encode()
    return value


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def small(text: str) -> int:
    number = int(text)
    if abs(number) > INTEGER_MAX:
        raise ValueError("too large")
    return number


def finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or (abs(number) > INTEGER_MAX and abs(number) < 1e21):
        raise ValueError("not a number that keeps its meaning")
    return number


def depth_of(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth_of, inner), default=0)


def play(first: int, count: int) -> Line:
    """Half of them returned by a tool, half read."""
    half = count // 2
    wrong = asyncio.run(through_an_engine(first, half))
    wrong += [found for seed in range(first, first + count - half) if (found := read_twice(seed))]
    return {"verdict": verdict(wrong), "trials": count, "violations": wrong[:20]}


def main() -> int:
    """All of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--all", type=int, default=ALL)
    given = parser.parse_args()
    results, bad = Results.of_this_commit(), 0
    for first in range(0, given.all, CHUNK):
        line = results.once("F43", first, partial(play, first, CHUNK))
        bad += line["verdict"] != "passed"
        print(f"{first} to {first + CHUNK - 1}: {line['verdict']} {line['violations'][:3]}", flush=True)
    print(f"{given.all} values, {bad} thousands with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
