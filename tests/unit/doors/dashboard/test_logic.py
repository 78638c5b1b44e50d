"""The dashboard without a browser: its pure parts under Node, its fold against the engine's, its colours."""

import json
import re
import subprocess
import sys
from itertools import combinations
from math import dist
from pathlib import Path
from typing import Any, cast

import pytest

from everstep import Ctx, Transient, tool
from everstep.domain.fold import fold
from everstep.domain.ids import Seq
from everstep.domain.values import JsonValue
from everstep.testing import TestEngine
from everstep.wire.event import decode
from tests.unit.doors.api.window import Window

DASHBOARD = Path(__file__).parents[4] / "dashboard"
NODE = Path(sys.executable).with_name("node")


def node(*words: str | Path, given: str = "") -> str:
    done = subprocess.run(
        [NODE, "--no-warnings", *words], input=given, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_pure_parts() -> None:
    node("--test", DASHBOARD / "test/logic.test.ts")


# --- colours ---

MACHADO = {  # full protan, deutan and tritan vision (Machado, Oliveira, Fernandes 2009)
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
STATES = ("running", "retrying", "paused", "completed", "failed", "queued")


def linear(colour: str) -> tuple[float, ...]:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    return tuple(one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)


def light(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, vision: str) -> tuple[float, float, float]:
    seen = [min(1.0, max(0.0, sum(m * c for m, c in zip(row, linear(colour), strict=True)))) for row in MACHADO[vision]]
    red, green, blue = seen
    x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047
    y = 0.2126729 * red + 0.7151522 * green + 0.0721750 * blue
    z = (0.0193339 * red + 0.1191920 * green + 0.9503041 * blue) / 1.08883
    fx, fy, fz = (one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116 for one in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def tokens() -> dict[str, dict[str, str]]:
    css = (DASHBOARD / "src/style/tokens.css").read_text()
    blocks = re.findall(r"\{([^{}]*--bg[^{}]*)\}", css)
    found = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block)) for block in blocks]
    assert found[1] == found[2]  # dark by choice is dark by the system
    return {"light": found[0], "dark": found[1]}


@pytest.mark.parametrize(("theme", "apart"), [("light", 19.3), ("dark", 19.6)])
def test_status_colours_can_be_read_and_told_apart_by_everybody(theme: str, apart: float) -> None:
    colours = tokens()[theme]
    for name in (*STATES, "text", "muted", "accent"):
        for ground in ("bg", "surface"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    for name in STATES:
        assert min(contrast(colours[name], colours[ground]) for ground in ("bg", "surface")) >= 4.59, name
    for ground in ("bg", "surface"):
        assert contrast(colours["control"], colours[ground]) >= 3
    for vision in MACHADO:
        for one, other in combinations(STATES, 2):
            far = dist(lab(colours[one], vision), lab(colours[other], vision))
            assert far >= apart - 0.05, (vision, one, other, far)


# --- the fold ---


@tool("f.ok", effect="pure")
async def ok(value: object = None) -> object:
    """It works."""
    return value


@tool("f.bad", effect="pure")
async def bad(many: int, *, ctx: Ctx) -> int:
    """It works after so many tries."""
    if ctx.attempt <= many:
        raise Transient("not yet")
    return many


APPROVAL = {"id": "go", "tool": "f.ok", "approve": "Go on?", "with": {"value": "${all}"}}
LIST = {
    "id": "all",
    "for_each": [0, 1, 2, 9],
    "tool": "f.bad",
    "with": {"many": "${item}"},
    "on_error": "continue",
    "parallel": 2,
}
PLANS: list[list[dict[str, Any]]] = [
    [{"id": "a", "tool": "f.ok"}, {"id": "b", "tool": "f.bad", "with": {"many": 2}}, {"id": "c", "tool": "f.ok"}],
    [LIST, APPROVAL],
    [{"id": "a", "tool": "f.ok"}, {"id": "b", "tool": "f.bad", "with": {"many": 99}}, {"id": "c", "tool": "f.ok"}],
    [{"id": "q", "tool": "ask", "with": {"question": "Which?"}}, {"id": "w", "tool": "f.ok", "when": "${q == 'x'}"}],
    [{"id": "b", "tool": "f.bad", "with": {"many": 99}, "on_error": "pause"}, {"id": "c", "tool": "f.ok"}],
]
ANSWERS = {
    "approvalRequired": {"answer": "approve"},
    "inputRequired": {"answer": "answer", "value": "y"},
    "toolError": {"answer": "skip"},
}


async def carried(engine: TestEngine, steps: list[dict[str, Any]]) -> list[bytes]:
    """The journal of a task that is answered, and retried once if it fails."""
    window = Window(engine)
    task = (await window.good("POST", "/v1/tasks", {"plan": cast("JsonValue", {"name": "p", "steps": steps})}))["id"]
    for _ in range(40):
        await engine.clock.advance("3s")
        seen = await window.good("GET", f"/v1/tasks/{task}")
        pause = seen["pause"]
        if pause is not None:
            digest = {} if pause["call"] is None else {"digest": pause["call"]["input"]["digest"]}
            body = cast("JsonValue", {**ANSWERS[pause["reason"]["type"]], **digest})
            await window.good("POST", f"/v1/inbox/{pause['id']}/answer", body)
        elif seen["status"] == "failed" and seen["generation"] == 1:
            await window.good("POST", f"/v1/tasks/{task}/retry", {"confirm_effects": True})
        elif seen["status"] in ("completed", "failed"):
            return [one.encoded async for one in engine.desk.events(task, Seq(0), follow=False)]
    raise AssertionError(f"{task} does not end")


async def test_the_fold_of_every_prefix_is_the_engines_own() -> None:
    config: dict[str, Any] = {"retry.times": 3, "retry.delay": "1s", "breaker.failures": 100, "breaker.min": 100}
    async with TestEngine([ok, bad], config=config) as engine:
        journals = [await carried(engine, steps) for steps in PLANS]
    given = json.dumps([[json.loads(one) for one in journal] for journal in journals])
    told = json.loads(node(DASHBOARD / "test/fold.ts", given=given))
    for journal, pages in zip(journals, told, strict=True):
        state = None
        for encoded, page in zip(journal, pages, strict=True):
            state = fold(state, "local", decode(encoded))
            steps = {
                path: [one.status, one.phase, one.started_at, one.ended_at, one.attempts]
                for path, one in state.steps.items()
            }
            assert (page["status"], page["generation"]) == (state.status, state.generation)
            assert page["steps"] == steps, state.seq
