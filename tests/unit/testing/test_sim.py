"""Test tools: visible effects, ordered failures, deaths and nonsense."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from everstep.adapters.threads import Threads
from everstep.adapters.tools.function import FunctionAdapter
from everstep.domain.failure import Category, EffectState
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject, JsonValue, NotJson
from everstep.engine.classify import classify
from everstep.testing.sim import VARIABLE, Simulated, sim_tools
from everstep.torture.history import read_effects
from everstep.wire.schema import compile_schema
from everstep.wire.values import Codec
from tests.unit.contexts import call_of, context

CODEC = Codec()
TOOLS = {made.spec.name: FunctionAdapter(made.served, threads=Threads()) for made in sim_tools()}
EFFECTS = {f"sim.effect.{effect}": effect for effect in Effect}


async def called(name: str, arguments: JsonObject, *, attempt: int = 1, key: str = "k") -> JsonValue:
    (spec,) = TOOLS[name].tools()
    assert compile_schema(spec.input_schema)(arguments) == []
    return await TOOLS[name].execute(call_of(name, arguments, key=key), context(attempt=attempt, idempotency_key=key))


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "effects.jsonl"))
    return tmp_path / "effects.jsonl"


def test_one_visible_effect_per_class() -> None:
    specs = {name: TOOLS[name].tools()[0] for name in EFFECTS}
    assert {name: spec.effect for name, spec in specs.items()} == EFFECTS
    assert [name for name, spec in specs.items() if spec.probeable] == ["sim.effect.verifiable"]


@pytest.mark.parametrize("name", EFFECTS)
async def test_an_effect_is_one_line_at_its_start_and_one_at_its_end(name: str, log: Path) -> None:
    assert await called(name, {"label": "x"}, attempt=2, key="k7") == {"label": "x", "key": "k7"}
    start, end = read_effects(log)
    assert (start.what, end.what) == ("start", "end")
    assert (start.task, start.step, start.attempt, start.key) == ("t_1", "step", 2, "k7")
    assert (start.pid, start.incarnation) == (os.getpid(), end.incarnation)
    assert start.output == {"label": "x", "key": "k7"}


async def test_no_log_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    await called("sim.effect.once", {"label": "x"})
    assert (await TOOLS["sim.effect.verifiable"].probe(call_of("sim.effect.verifiable", {}))).result == "unknown"


async def test_the_probe_tells_done_from_not_done(log: Path) -> None:
    probe = TOOLS["sim.effect.verifiable"].probe
    assert (await probe(call_of("sim.effect.verifiable", {}, key="k1"))).result == "not_done"
    await called("sim.effect.verifiable", {"label": "x"}, key="k1")
    with log.open("a") as file:
        file.write('{"key": "k2", "cut off')
    found = await probe(call_of("sim.effect.verifiable", {}, key="k1"))
    assert found.result == "done"
    assert found.output == {"label": "x", "key": "k1"}
    assert (await probe(call_of("sim.effect.verifiable", {}, key="k2"))).result == "not_done"


async def test_lines_of_many_calls_stay_whole(log: Path) -> None:
    await asyncio.gather(*(called("sim.effect.once", {"label": "x" * n}, key=f"k{n}") for n in range(50)))
    assert len(read_effects(log)) == 100


async def test_ordered_failures() -> None:
    order: JsonObject = {"times": 2, "code": "my_code", "category": "resource", "effect_state": "unknown"}
    for attempt in (1, 2):
        with pytest.raises(Simulated) as failed:
            await called("sim.fail", order | {"retry_after": 1.5}, attempt=attempt)
        failure = classify(failed.value, tool="sim.fail")
        assert (failure.code, failure.category) == ("my_code", Category.RESOURCE)
        assert (failure.effect_state, failure.retry_after_ms) == (EffectState.UNKNOWN, 1_500)
    assert await called("sim.fail", order, attempt=3) == {"attempt": 3}


async def test_waiting(log: Path) -> None:
    assert await called("sim.sleep", {"seconds": 0}) == {"seconds": 0}
    assert [effect.what for effect in read_effects(log)] == ["start", "end"]


@pytest.mark.parametrize("kind", ["nan", "surrogate", "deep", "huge", "not_json"])
async def test_results_that_are_none(kind: str) -> None:
    value = await called("sim.result", {"kind": kind})
    with pytest.raises(NotJson):
        CODEC.seal(value)


async def test_results_of_the_wrong_type_and_good_ones() -> None:
    (spec,) = TOOLS["sim.result"].tools()
    assert spec.output_schema is not None
    check = compile_schema(spec.output_schema)
    assert check(await called("sim.result", {"kind": "wrong_type"})) != []
    assert check(await called("sim.result", {"kind": "good"})) == []


@pytest.mark.parametrize(
    ("arguments", "status"), [({"code": 7}, 7), ({}, -signal.SIGKILL), ({"signal": "SIGTERM"}, -signal.SIGTERM)]
)
def test_the_process_ends_as_ordered(arguments: JsonObject, status: int) -> None:
    program = f"""
        import asyncio
        from everstep.testing.sim import leave
        from tests.unit.contexts import context
        asyncio.run(leave(**{arguments!r}, ctx=context()))
    """
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, cwd=root)
    assert done.returncode == status


async def test_after_its_deaths_it_succeeds() -> None:
    assert await called("sim.exit", {"times": 2}, attempt=3) == {"attempt": 3}
