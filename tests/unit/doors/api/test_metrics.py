"""`/v1/metrics`: every figure of the catalogue, right, in a text that Prometheus reads, and nobody's name in it."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TypeAlias

import pytest

from everstep.authoring.tool import tool
from everstep.domain.usage import Measured, Usage
from everstep.domain.values import JsonValue
from everstep.doors.api.routes import match
from everstep.ports.tool import Ctx, Transient
from everstep.testing.engine import TestEngine
from tests.unit.doors.api.window import ANA, HOLD, Window
from tests.unit.engine.plans import Tools

Figures: TypeAlias = dict[str, float]

LABEL = r'[a-z_]+="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(
    rf"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?P<labels>\{{{LABEL}(?:,{LABEL})*\}})? (?P<value>[0-9.eE+-]+)"
)


def parsed(text: str) -> Figures:
    """As a scraper reads it: each sample once, its family announced before it, cumulative buckets."""
    figures: Figures = {}
    families: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in families
            families[name] = kind
        elif not line.startswith("# HELP "):
            found = SAMPLE.fullmatch(line)
            assert found is not None, line
            family = re.sub(r"_(bucket|sum|count)$", "", found["name"])
            assert families.get(found["name"]) in ("counter", "gauge") or families[family] == "histogram"
            key = f"{found['name']}{found['labels'] or ''}"
            assert key not in figures
            figures[key] = float(found["value"])
    for name, kind in families.items():
        if kind == "histogram":
            check_histogram(name, figures)
    return figures


def check_histogram(name: str, figures: Figures) -> None:
    for key, count in figures.items():
        if key.startswith(f"{name}_count"):
            labels = key.removeprefix(f"{name}_count").strip("{}")
            mine = [value for one, value in figures.items() if one.startswith(f"{name}_bucket{{{labels}")]
            assert mine == sorted(mine)
            assert mine[-1] == count


async def scrape(window: Window, path: str = "/v1/metrics") -> Figures:
    response = await window.api.handle(window.request("GET", path))
    assert response.status == 200
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    return parsed(response.body.decode())


@pytest.fixture
def tools() -> Tools:
    return Tools()


@pytest.fixture
async def window(tools: Tools) -> AsyncIterator[Window]:
    @tool("test.slow", effect="pure", pool="narrow")
    async def slow(seconds: float, *, ctx: Ctx) -> float:
        """Takes its time, and says what it cost."""
        ctx.usage(cost=0.25, tokens_in=7)
        await engine.clock.sleep_until(engine.clock.now() + int(seconds * 1000))  # type: ignore[arg-type]
        return seconds

    async with TestEngine([*tools.all(), slow], config={"pools": {"narrow": 1}}) as engine:
        yield Window(engine)
        tools.release.set()


def slow(*seconds: float, **more: JsonValue) -> dict[str, JsonValue]:
    steps: list[JsonValue] = [
        {"id": f"s{n}", "tool": "test.slow", "with": {"seconds": s}, "needs": []} for n, s in enumerate(seconds)
    ]
    return {"name": "slow", "steps": steps, **more}


@pytest.mark.req("M.1", "DoD.10")
async def test_times_of_calls_and_tasks_fall_into_their_buckets(window: Window) -> None:
    await window.start(slow(2.0, 20.0))
    await window.engine.clock.advance("1m")
    seen = await scrape(window)
    call = 'everstep_step_seconds_bucket{tool="test.slow",result="succeeded",le='
    assert [seen[f'{call}"{le}"}}'] for le in ("1", "2.5", "10", "30", "+Inf")] == [0, 1, 1, 2, 2]
    assert seen['everstep_step_seconds_sum{tool="test.slow",result="succeeded"}'] == pytest.approx(22, abs=0.1)
    assert seen['everstep_task_seconds_count{status="completed"}'] == 1
    assert seen["everstep_tasks_created_total"] == 1
    assert seen['everstep_tasks{status="completed"}'] == 1
    assert seen['everstep_tool_usage_total{tool="test.slow",what="cost"}'] == 0.5
    assert seen['everstep_tool_usage_total{tool="test.slow",what="tokens_in"}'] == 14


async def test_what_a_process_was_measured_to_use_is_added_up_by_tool(window: Window) -> None:
    figures = window.engine.desk.monitoring.figures
    for peak in (100, 300, 200):
        measured = Measured(cpu_s=1.5, memory_peak_bytes=peak, bytes_in=10, bytes_out=0)
        figures.report("shell.run", Usage(cost=0.5, measured=measured))
    seen = await scrape(window)
    used = {
        what: seen[f'everstep_tool_usage_total{{tool="shell.run",what="{what}"}}'] for what in ("cpu_s", "bytes_in")
    }
    assert used == {"cpu_s": 4.5, "bytes_in": 30}
    assert seen['everstep_tool_memory_peak_bytes{tool="shell.run"}'] == 300


async def test_a_step_that_waits_for_a_slot_shows_how_long(window: Window) -> None:
    await window.start(slow(20.0, 20.0, parallel=2))
    await window.engine.clock.advance("1s")
    now = await scrape(window)
    assert [now[f'everstep_pool_slots{{pool="narrow",what="{what}"}}'] for what in ("size", "taken", "waiting")] == [
        1,
        1,
        1,
    ]
    assert (now["everstep_held_tasks"], now['everstep_tasks{status="running"}']) == (1, 1)
    await window.engine.clock.advance("1m")
    seen = await scrape(window)
    waited = 'everstep_step_queue_seconds_sum{tool="test.slow",for="slot"}'
    assert seen[waited] == pytest.approx(20, abs=0.1)


async def test_failures_retries_fallbacks_and_pauses_are_counted_by_tool(window: Window, tools: Tools) -> None:
    tools.raises["x"] = [Transient("not now"), Transient("not now"), None]
    tools.raises["y"] = [Transient("never")]
    once: JsonValue = {"id": "a", "tool": "test.echo", "with": {"label": "x"}}
    never: JsonValue = {
        "id": "b", "tool": "test.echo", "with": {"label": "y"}, "retry": {"times": 0}, "on_error": "pause",
        "fallback": [{"tool": "test.hold", "with": {"label": "z"}}],
    }  # fmt: skip
    tools.raises["z"] = [Transient("neither")]
    await window.start({"name": "p", "steps": [once, never]})
    await window.engine.clock.advance("5m")
    seen = await scrape(window)
    assert seen['everstep_retries_total{tool="test.echo",category="transient"}'] == 2
    assert seen['everstep_step_seconds_count{tool="test.echo",result="failed"}'] == 3
    assert seen['everstep_step_seconds_count{tool="test.hold",result="failed"}'] >= 1
    assert seen['everstep_fallbacks_total{tool="test.echo"}'] == 1
    assert seen['everstep_pauses_total{type="toolError"}'] == 1


async def test_what_was_interrupted_is_counted(window: Window) -> None:
    task = await window.start(HOLD)
    await window.engine.crash()
    fresh = Window(window.engine)
    assert (await scrape(fresh))['everstep_recoveries_total{reason="worker_dead"}'] == 1
    await fresh.good("POST", f"/v1/tasks/{task['id']}/pause", {})
    assert (await scrape(fresh))['everstep_pauses_total{type="userRequested"}'] == 1


async def test_the_queue_shows_how_long_tasks_waited(window: Window) -> None:
    await window.good("PUT", "/v1/halt", {"on": True})
    await window.start(HOLD)
    await window.engine.clock.advance("40s")
    assert (await scrape(window))["everstep_halted"] == 1
    await window.good("PUT", "/v1/halt", {"on": False})
    await window.engine.clock.advance("1s")
    seen = await scrape(window)
    assert seen["everstep_task_queue_seconds_sum"] == pytest.approx(40, abs=0.1)


async def test_no_label_tells_of_an_owner_a_task_or_a_step(window: Window) -> None:
    task = await window.start(slow(1.0), title="Secret title", labels={"team": "blue"})
    await window.engine.clock.advance("1m")
    text = (await window.api.handle(window.request("GET", "/metrics"))).body.decode()
    for word in (ANA.owner, ANA.actor.id, task["id"], "Secret", "blue", "s0"):
        assert f'"{word}"' not in text
    assert parsed(text) == await scrape(window)


async def test_watchers_are_counted_and_how_late_they_hear(window: Window) -> None:
    task = await window.start(slow(20.0))
    stream = window.api.stream(window.request("GET", f"/v1/tasks/{task['id']}/events"))
    async with aclosing(stream) as frames:
        while json.loads(await anext(frames))["type"] != "live":
            pass
        assert (await scrape(window))['everstep_sockets{of="task"}'] == 1
        await window.engine.clock.advance("1m")
        while json.loads(await anext(frames)).get("event", {}).get("type") != "task.completed":
            pass
        assert (await scrape(window))["everstep_delivery_seconds_count"] >= 1
    assert (await scrape(window))['everstep_sockets{of="task"}'] == 0


def test_only_an_administrator_may_look() -> None:
    assert [match("GET", path).route.scope for path in ("/metrics", "/v1/metrics")] == ["admin", "admin"]
