"""Composition root: settings -> adapters -> kit. The one place that chooses, and the one dynamic import."""

import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from everstep.adapters.clock import SystemClock, ThreadPulse
from everstep.adapters.drivers import driver_of
from everstep.adapters.entropy import SystemEntropy
from everstep.adapters.gauge import MachineGauge
from everstep.adapters.isolation.trying import tried
from everstep.adapters.loops import new_loop, run_process
from everstep.adapters.plugins import plugin
from everstep.adapters.secrets import KnownSecrets, gather
from everstep.adapters.stores.moved import lower_store, move_store
from everstep.adapters.stores.named import copy_store, migrate_store, store_of
from everstep.adapters.telemetry.exported import exporter
from everstep.adapters.telemetry.logs import LogSink
from everstep.adapters.telemetry.notify import Notifier
from everstep.adapters.telemetry.redacted import RedactedSink
from everstep.adapters.threads import Threads
from everstep.adapters.tools.code import CodeTools
from everstep.adapters.tools.function import FunctionAdapter
from everstep.adapters.tools.mcp_agreeing import Agreement
from everstep.adapters.tools.mcp_proxied import Proxied
from everstep.adapters.tools.resource import Library, ResourceTools, Source
from everstep.adapters.tools.shipped import Walls, browser_walls, shipped, walls_of
from everstep.adapters.tools.subplan import PlanTools
from everstep.authoring.durable import DurableFunction
from everstep.authoring.tool import FunctionTool
from everstep.domain.consent import Consent
from everstep.domain.errors import SettingsError
from everstep.domain.events import Actor, ActorKind
from everstep.domain.expiry import Patience
from everstep.domain.ids import Millis, WorkerId
from everstep.domain.permissions import unknown
from everstep.domain.policy import RetryPolicy
from everstep.domain.rate import parse_rate
from everstep.domain.values import JsonObject
from everstep.domain.version import __version__
from everstep.engine.bounds import Limits
from everstep.engine.breakers import Breakers
from everstep.engine.catalog import Catalog
from everstep.engine.elsewhere import Elsewhere
from everstep.engine.feed import Feed
from everstep.engine.kit import Kit
from everstep.engine.loop import Loop
from everstep.engine.passage import Passage
from everstep.engine.pools import OpenPools, Pools
from everstep.engine.runtime import Runtime
from everstep.engine.take_back import TakeBack
from everstep.ports.adapter import Completed
from everstep.ports.adapter import ToolAdapter as SafeAdapter
from everstep.ports.clock import Clock, Pulse
from everstep.ports.driver import Driver
from everstep.ports.entropy import Entropy
from everstep.ports.fault import Fault
from everstep.ports.gauge import Gauge, Queue
from everstep.ports.script import Script
from everstep.ports.sink import Sink
from everstep.ports.store import Store, Worker
from everstep.ports.telemetry import Telemetry
from everstep.ports.tool import ToolAdapter
from everstep.ports.traffic import Traffic
from everstep.settings import Settings
from everstep.wire.values import Codec

__all__ = [
    "Agreement",
    "Door",
    "Driver",
    "Gauge",
    "KnownSecrets",
    "Outside",
    "Parts",
    "Proxied",
    "Source",
    "adapters_of",
    "assemble",
    "build",
    "copy_store",
    "embedded_door",
    "lower_store",
    "migrate_store",
    "move_store",
    "new_loop",
    "open_local_door",
    "plugin",
    "run_process",
    "scripts_of",
    "secrets_of",
    "the_world",
    "tried_walls",
]

FAILPOINTS = "EVERSTEP_FAILPOINTS"


class Door(Protocol):
    """A way in that can be shut."""

    async def close(self) -> None:
        """Take no more callers."""


class EmbeddedDoor(Door, Protocol):
    """One that is an ASGI app."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 -- ASGI's own arguments
        """One caller."""


@dataclass(slots=True, kw_only=True)
class Outside:
    """Answers to the ports that differ between the world, tests and simulation."""

    store: Store
    clock: Clock
    pulse: Pulse
    entropy: Entropy
    sink: Sink
    fault: Fault
    codec: Codec
    secrets: KnownSecrets = field(default_factory=lambda: KnownSecrets({}, {}))
    traffic: Traffic | None = None
    """None: the store is that too."""
    gauge: Gauge | None = None
    """None: nobody looks how much is left of the machine."""
    driver: Driver | None = None
    """None: who carries tasks is said by the settings."""


@dataclass(slots=True, kw_only=True)
class Parts:
    """What an engine is made of."""

    runtime: Runtime
    workspace: str
    sink: Sink
    door: Door | None = None


def build(
    settings: Settings, tools: Sequence[object], *, carries: str, secrets: Mapping[str, str] | None = None
) -> Parts:
    """An engine on the real world; nothing is opened yet."""
    outside = the_world(settings)
    outside.secrets = secrets_of(settings, secrets or {})
    adapters = adapters_of(settings, tools, outside.codec, outside.secrets)
    parts = assemble(settings, adapters, outside, carries=carries, scripts=scripts_of(settings, tools))
    if carries != "none":
        parts.runtime.telemetry = partial(_telemetry, settings, os.environ, parts.runtime.kit)
    return parts


def _telemetry(settings: Settings, environment: Mapping[str, str], kit: Kit) -> list[Telemetry]:
    """Everybody who is told what happens here."""
    notified: list[Telemetry] = []
    if settings.notify.on and (settings.notify.command or settings.notify.webhook):
        notified.append(Notifier(settings.notify, kit.sink))
    exported = exporter(environment, kit.figures.families)
    return notified if exported is None else [*notified, exported]


def the_world(settings: Settings, fault: Fault | None = None) -> Outside:
    """Real clock, real chance, the store that the settings name; faults of the environment, unless others are given."""
    clock = SystemClock()
    codec = Codec(inline_bytes_max=settings.limits.inline_bytes, bytes_max=settings.limits.artifact_bytes)
    fault = fault or fault_points()
    store = store_of(settings, clock, fault)
    return Outside(
        store=store,
        clock=clock,
        pulse=ThreadPulse(),
        entropy=SystemEntropy(),
        sink=LogSink(settings.log_path, level=settings.log_level),
        fault=fault,
        codec=codec,
        gauge=MachineGauge(settings.home.parent, cast("Queue", store)),
    )


def secrets_of(settings: Settings, given: Mapping[str, str]) -> KnownSecrets:
    """What the operator has registered, and for whom."""
    return KnownSecrets(gather(given, os.environ, settings.secrets_dir), settings.grants)


async def tried_walls(settings: Settings) -> JsonObject:
    """What this machine really puts around a program, and around the browser; nothing: no program can be started."""
    return {**(await tried(walls_of(settings).uid) or {}), "browser": await browser_walls(settings)}


def adapters_of(
    settings: Settings, tools: Iterable[object], codec: Codec, secrets: KnownSecrets | None = None
) -> list[ToolAdapter]:
    """The built-in families, those the settings name, and those handed in."""
    threads, tools = Threads(), tuple(tools)
    families = [*shipped(settings, codec, threads, secrets or KnownSecrets({}, {}))]
    libraries = [one for one in families if isinstance(one, Library)]
    return [
        *families,
        PlanTools(settings.plans_dirs),
        ResourceTools([one for one in tools if isinstance(one, Source)], threads, libraries),
        *_plugged_in(settings.tools, threads, walls_of(settings)),
        *_adapters(
            (one for one in _brought(tools, settings) if not isinstance(one, Source)), threads, walls_of(settings)
        ),
    ]


def scripts_of(settings: Settings, tools: Iterable[object]) -> list[Script]:
    """Durable functions: of the modules that the settings name, and those handed in."""
    named = [one for name in settings.tools for one in plugin(name).values((DurableFunction,))]
    return [one.script for one in (*named, *tools) if isinstance(one, DurableFunction)]


def _brought(tools: Iterable[object], settings: Settings) -> Iterator[object]:
    """What was handed in, and the tools of its module that a durable function brings along; each once."""
    given = [*tools]
    known = {id(one) for one in given}
    known |= {id(one) for name in settings.tools for one in plugin(name).values((FunctionTool,))}
    for tool in given:
        if not isinstance(tool, DurableFunction):
            yield tool
        for other in tool.tools if isinstance(tool, DurableFunction) else ():
            if id(other) not in known:
                known.add(id(other))
                yield other


def assemble(
    settings: Settings,
    adapters: Iterable[ToolAdapter],
    outside: Outside,
    *,
    carries: str,
    scripts: Iterable[Script] = (),
) -> Parts:
    """An engine on whatever world is handed in."""
    if settings.engine.kind != "embedded" and carries == "own":
        carries = "none"  # whoever carries tasks there carries those of everybody
    driver = outside.driver or driver_of(settings) if carries != "none" else None
    redactor = outside.secrets.redactor
    sink = RedactedSink(outside.sink, redactor) if redactor else outside.sink
    worker_id = WorkerId(outside.entropy.new_id("w"))
    kit = Kit(
        store=outside.store,
        passage=Passage(
            traffic=outside.traffic or cast("Traffic", outside.store),
            pools=(Pools if driver is None else OpenPools)(
                {"shell": os.cpu_count() or 1, **settings.pools}, settings.fleet_pools
            ),
            rates={name: rate for name, text in settings.rates.items() if (rate := parse_rate(text)) is not None},
            quotas=settings.quotas,
        ),
        codec=outside.codec,
        clock=outside.clock,
        pulse=outside.pulse,
        entropy=outside.entropy,
        fault=outside.fault,
        sink=sink,
        catalog=_catalog(adapters, outside, settings.consent),
        feed=Feed(),
        worker=worker_id,
        actor=Actor(kind=ActorKind.SYSTEM, id=worker_id, via="engine"),
        limits=limits_of(settings),
        breakers=Breakers(settings.breaker, settings.breakers),
        home=str(_home(settings)),
    )
    kit.scripts.update((script.plan.name, script) for script in scripts)
    kit.passage.results.bytes_max = _number(settings, "cache.bytes")
    worker = Worker(
        id=worker_id,
        kind=settings.engine.kind if carries != "none" else "",
        name=settings.engine.name or socket.gethostname(),
        host=socket.gethostname(),
        pid=os.getpid(),
        version=__version__,
        tools=tuple(sorted(kit.catalog.names)) if carries == "all" else (),
        started_at=(now := outside.clock.now()),
        heartbeat_at=now,
    )
    loop = Loop(kit, () if carries == "own" else None) if driver is None else Elsewhere(kit, driver)
    runtime = Runtime(kit, worker, carries=carries != "none", loop=loop, gauge=outside.gauge)
    return Parts(runtime=runtime, workspace=_workspace(settings), sink=sink)


def _home(settings: Settings) -> Path:
    """The folder of the store."""
    return settings.base if settings.store_path is None else settings.store_path.parent


def _workspace(settings: Settings) -> str:
    """What tasks record: seen from the store, where both lie in the project folder, so that it can be moved."""
    within = _home(settings).is_relative_to(settings.base) and settings.workspace.is_relative_to(settings.base)
    return os.path.relpath(settings.workspace, _home(settings)) if within else str(settings.workspace)


def _catalog(adapters: Iterable[ToolAdapter], outside: Outside, consent: Consent) -> Catalog:
    """What can be called, and the tool that takes calls back."""
    take_back = TakeBack()
    code = CodeTools(outside.entropy)
    take_back.catalog = catalog = Catalog((*adapters, code, take_back), outside.codec, consent, outside.secrets)
    for name, facts in catalog.facts.items():
        for strange in unknown(facts.permissions):
            raise SettingsError(f"'{name}' needs '{strange}', which is no permission", what_to_do="correct the tool")
    for tool in sorted({*consent.approve, *consent.allow_untrusted, *consent.llm_approvals}):
        if catalog.find(tool) is None:  # another engine on this configuration may have it
            outside.sink.note("the policy names a tool that is not here", tool=tool)
    return catalog


def limits_of(settings: Settings) -> Limits:
    """The engine's own values out of the settings."""
    engine, retry = settings.engine, settings.retry
    return Limits(
        tasks=engine.tasks,
        heartbeat_s=engine.heartbeat_ms / 1000,
        stale_after_ms=Millis(engine.stale_after_ms),
        janitor_ms=Millis(engine.janitor_ms),
        max_recoveries=engine.max_recoveries,
        shutdown_grace_s=engine.shutdown_grace_ms / 1000,
        step_timeout_ms=Millis(engine.step_timeout_ms),
        patience=Patience(
            length_ms=Millis(engine.pause_timeout_ms),
            then=engine.on_pause_timeout,
            handoff_ms=Millis(_number(settings, "mcp.handoff_timeout")),
        ),
        signal_keep_ms=Millis(engine.signal_keep_ms),
        consent=settings.consent,
        policy=settings.consent.version,
        items_max=settings.limits.items,
        keys_ms=settings.limits.keys_ms,
        retention=settings.limits.retention,
        live_tasks=settings.limits.live_tasks,
        of_task=settings.limits.of_task,
        retry=RetryPolicy(
            times=retry.times,
            delay_ms=Millis(retry.delay_ms),
            factor=2.0,
            max_delay_ms=Millis(retry.max_delay_ms),
            within_ms=None,
            only=None,
        ),
    )


def _number(settings: Settings, key: str) -> int:
    return cast("int", settings.said[key].value)


def fault_points() -> Fault:
    """A no-op, unless the environment arms failpoints."""
    if FAILPOINTS not in os.environ:
        from everstep.ports.fault import no_fault

        return no_fault
    return cast("Fault", import_module("everstep.testing.crash").fault_from_env())


async def open_local_door(desk: object, settings: Settings) -> Door | None:
    """The engine's local door, by name: no arrow may point up to `doors`."""
    if settings.store_path is None:
        return None
    return cast("Door", await import_module("everstep.doors.local.door").open_door(desk, settings))


def embedded_door(engine: object) -> EmbeddedDoor:
    """The engine as a part of somebody's app, by name too."""
    return cast("EmbeddedDoor", import_module("everstep.doors.embedded").Embedded(engine))


def _plugged_in(names: Iterable[str], threads: Threads, walls: Walls) -> Iterator[ToolAdapter]:
    """Tools that the operator's configuration names: of a package, a module, or one object of it."""
    for name in names:
        found = plugin(name)
        values = [one for one in found.values((FunctionTool, SafeAdapter)) if not isinstance(one, DurableFunction)]
        adapters = [*_adapters(values, threads, walls)]
        found.refuse_strangers([spec.name for adapter in adapters for spec in adapter.tools()])
        yield from adapters


def _adapters(tools: Iterable[object], threads: Threads, walls: Walls) -> Iterator[ToolAdapter]:
    """Functions, adapters, or objects that look like one."""
    for tool in tools:
        if isinstance(tool, FunctionTool):
            yield FunctionAdapter(tool.served, threads=threads, walls=walls)
        elif isinstance(tool, SafeAdapter):
            yield tool
        elif hasattr(tool, "tools") and hasattr(tool, "execute"):
            yield Completed(tool)
        else:
            raise SettingsError(
                f"{tool!r} is no tool", what_to_do="decorate the function with @tool, or hand in a ToolAdapter"
            )
