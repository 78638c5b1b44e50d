"""Fakes: call by call, real schemas, a record that outlives the engine."""

import asyncio
from collections.abc import Mapping

import pytest

from everstep.adapters.threads import Threads
from everstep.adapters.tools.file import FileTools
from everstep.adapters.tools.text import text_tools
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject, JsonValue
from everstep.engine.catalog import Catalog
from everstep.ports.tool import ToolAdapter
from everstep.testing.clock import VirtualClock
from everstep.testing.fakes import Fake, fake, with_fakes
from everstep.wire.values import Codec
from tests.unit.contexts import call_of, context

CODEC = Codec()


def faked(fakes: Mapping[str, Fake], clock: VirtualClock | None = None) -> dict[str, ToolAdapter]:
    real: list[ToolAdapter] = [text_tools(), FileTools(Threads())]
    adapters = with_fakes(real, fakes, clock=clock or VirtualClock())
    Catalog(adapters, CODEC)
    return {spec.name: adapter for adapter in adapters for spec in adapter.tools()}


async def called(
    fakes: Mapping[str, Fake], name: str, arguments: JsonObject | None = None, key: str = "k"
) -> JsonValue:
    call = call_of(name, arguments or {}, key=key)
    return await faked(fakes)[name].execute(call, context())  # type: ignore[return-value]  # no durable wait here


async def test_a_value_for_every_call() -> None:
    fakes = {"mail.send": fake(returns={"message_id": "m1"})}
    for _ in range(3):
        assert await called(fakes, "mail.send", {"to": "a"}) == {"message_id": "m1"}
    assert fakes["mail.send"].count == 3
    assert fakes["mail.send"].calls[0].arguments == {"to": "a"}


async def test_lists_go_call_by_call_and_the_last_repeats() -> None:
    fakes = {"a.b": fake(returns=[1, 2], raises=[TimeoutError(), None])}
    with pytest.raises(TimeoutError):
        await called(fakes, "a.b")
    assert [await called(fakes, "a.b") for _ in range(3)] == [2, 2, 2]
    assert fakes["a.b"].count == 4


async def test_an_error_for_every_call() -> None:
    fakes = {"a.b": fake(raises=ConnectionError)}
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await called(fakes, "a.b")
    assert fakes["a.b"].made == {}


async def test_delays_wait_on_the_clock() -> None:
    clock = VirtualClock()
    adapter = faked({"a.b": fake(returns=1, delay=["30s", "1ms"])}, clock)["a.b"]
    waiting = asyncio.create_task(adapter.execute(call_of("a.b", {}), context()))
    await clock.advance("29s")
    assert not waiting.done()
    await clock.advance("1s")
    assert await waiting == 1
    with pytest.raises(ValueError, match="not a duration"):
        fake(delay="30 sec")


def test_real_schemas_stay() -> None:
    adapters = faked({"file.write": fake(returns={}, effect="once"), "mail.send": fake()})
    specs = {spec.name: spec for adapter in adapters.values() for spec in adapter.tools()}
    real = {spec.name: spec for spec in FileTools(Threads()).tools()}
    assert specs["file.write"].input_schema == real["file.write"].input_schema
    assert specs["file.write"].effect is Effect.ONCE
    assert specs["file.read"] == real["file.read"]
    assert specs["mail.send"].input_schema == {"type": "object"}
    write = adapters["file.write"]
    assert write.validate(call_of("file.write", {"path": "../a", "text": ""})) != ()
    assert write.effect_of(call_of("file.write", {})) is Effect.ONCE
    assert write.effect_of(call_of("file.read", {})) is None
    assert write.classify(ValueError()) is None
    assert write.estimate(call_of("file.write", {"text": "x"})) == FileTools(Threads()).estimate(
        call_of("file.write", {"text": "x"})
    )


async def test_what_is_not_faked_is_real() -> None:
    fakes = {"text.hash": fake(returns={"hash": "x", "algorithm": "y"})}
    assert await called(fakes, "text.join", {"texts": ["a"]}) == {"text": "a"}
    assert await called(fakes, "text.hash", {"text": "a"}) == {"hash": "x", "algorithm": "y"}
    adapter = faked(fakes)["text.join"]
    assert (await adapter.health()).status == "healthy"
    assert (await adapter.probe(call_of("text.join", {}))).result == "unknown"


async def test_the_record_answers_the_probe() -> None:
    fakes = {"a.b": fake(returns=["one", "two"], effect="verifiable")}
    await called(fakes, "a.b", key="k1")
    probe = faked(fakes)["a.b"].probe
    found = await probe(call_of("a.b", {}, key="k1"))
    assert (found.result, found.output) == ("done", "one")
    assert (await probe(call_of("a.b", {}, key="k2"))).result == "not_done"


async def test_a_probe_as_ordered() -> None:
    probe = faked({"a.b": fake(returns=3, probe=["unknown", "done"])})["a.b"].probe
    assert (await probe(call_of("a.b", {}))).result == "unknown"
    found = await probe(call_of("a.b", {}))
    assert (found.result, found.output) == ("done", 3)
