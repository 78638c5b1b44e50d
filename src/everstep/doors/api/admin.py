"""Health: whether the engine lives, takes work, and on what it works. Answers while nothing else does."""

from collections.abc import Mapping
from typing import Final

from everstep.domain.errors import StoreError, Validation
from everstep.domain.pausing import GRACEFUL, MODES
from everstep.domain.queue import live_tasks_max
from everstep.domain.states import TaskStatus
from everstep.domain.values import JsonObject, JsonValue
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.request import Response, reply
from everstep.ports.housekeeping import KeptWorker
from everstep.ports.traffic import Halt
from everstep.wire.times import to_text

OF_ALL: Final = ("events", "size_bytes", "commit_p95_s")
"""Figures of the store from which one owner could tell what others do."""


async def health(back: Backing, asked: Asked) -> Response:
    """Always 200: the answer is in the body."""
    return reply(await _health(back, asked))


async def ready(back: Backing, asked: Asked) -> Response:
    """The same, with a status that a probe understands."""
    return reply(await _health(back, asked), 200 if back.desk.gate.ready else 503)


async def halt(back: Backing, asked: Asked) -> Response:
    """Let everything stand still, or go on; kept over restarts."""
    fields = asked.fields
    if "on" not in fields:
        raise Validation("'on' is missing: true to halt everything, false to go on")
    note, mode = fields.text("note"), fields.text("mode") or GRACEFUL
    if mode not in MODES:
        raise Validation(f"'mode' must be one of {', '.join(MODES)}")
    if fields.flag("on"):
        await back.desk.halt(asked.who, note, mode)
    else:
        await back.desk.lift_halt()
    return reply({"halt": halt_json(back.desk.halted)})


async def workers(back: Backing, asked: Asked) -> Response:  # noqa: ARG001 -- every handler is called alike
    """Who carries tasks of this store, or did, and with which tools."""
    kept = await back.desk.workers()
    names: list[JsonValue] = [entry.spec.name for entry in back.desk.tools]
    return reply({"items": [_worker(back, one, names) for one in kept], "next_cursor": None})


def _worker(back: Backing, one: KeptWorker, names: list[JsonValue]) -> JsonObject:
    mine = one.id == back.desk.worker
    return {
        "id": one.id,
        "name": one.name,
        "host": one.host,
        "incarnation": one.id,
        "heartbeat_at": to_text(one.heartbeat_at),
        "tasks": one.tasks,
        "tools": names if mine else list(one.tools),
        "version": one.version,
        "status": "dead" if one.gone else "live" if back.desk.gate.ready or not mine else "draining",
    }


def halt_json(halt: Halt | None) -> JsonObject | None:
    """Who halted everything, when and how."""
    if halt is None:
        return None
    return {"mode": halt.mode, "by": halt.by, "at": to_text(halt.at), "note": halt.note}


async def _health(back: Backing, asked: Asked) -> JsonObject:
    """Two facts for anybody, the rest for those who may look; what tells of all owners only for an administrator."""
    gate = back.desk.gate
    store, trouble = await _store(back)
    trouble = trouble or back.desk.monitoring.unwell
    status = "ok" if gate.ready and trouble is None else "degraded"
    if asked.request.who is None:
        return {"status": status, "ready": gate.ready}
    sees_all = "admin" in asked.request.by.scopes
    if store is not None and not sees_all:
        mine = await back.desk.monitoring.statuses(asked.who.owner)
        store = {**store, "tasks": {status: mine.get(status, 0) for status in TaskStatus}, **dict.fromkeys(OF_ALL)}
    return {
        "status": status,
        "ready": gate.ready,
        "reason": trouble or gate.reason or None,
        "version": back.version,
        "incarnation": back.incarnation,
        "store": store,
        "durability": back.settings.durability,
        "recovery": {"recovered": gate.recovered},
        "containment": None,
        "halt": halt_json(back.desk.halted),
        "queue": queue_json(store),
        "load": load_json(back) if sees_all else None,
        "limits": {
            "tasks": back.settings.engine.tasks,
            "live_tasks": live_tasks_max(back.settings.owner, back.settings.limits.live_tasks),
        },
        "pools": pools_json(back.desk.pool_figures) if sees_all else None,
        "rates": rates_json(back.desk.rate_figures) if sees_all else None,
        "streams": {"open": back.desk.monitoring.watchers, "dropped": back.desk.monitoring.dropped}
        if sees_all
        else None,
    }


def load_json(back: Backing) -> JsonObject:
    """How many tasks are carried, and whether this machine has enough left for more."""
    seen = back.desk.monitoring
    return {"tasks": seen.busy, "max": back.settings.engine.tasks, "level": seen.load.name.lower()}


def queue_json(store: JsonObject | None) -> JsonObject | None:
    """How many tasks wait to be carried."""
    tasks = None if store is None else store["tasks"]
    if not isinstance(tasks, dict):
        return None
    return {name: tasks.get(name, 0) for name in ("queued", "stalled")}


def pools_json(figures: Mapping[str, tuple[int, int, int]]) -> JsonObject:
    """How full each pool in use is."""
    return {name: {"size": size, "taken": taken, "waiting": waits} for name, (size, taken, waits) in figures.items()}


def rates_json(figures: Mapping[str, tuple[int, int, int, int]]) -> JsonObject:
    """How much of each rate is in use."""
    return {
        name: {"max": most, "period_s": period / 1000, "used": used, "waiting": waits}
        for name, (most, period, used, waits) in figures.items()
    }


async def _store(back: Backing) -> tuple[JsonObject | None, str | None]:
    try:
        info = await back.desk.info()
    except StoreError as error:
        return None, error.message
    figures: JsonObject = {
        "kind": info.kind,
        "schema_version": info.schema_version,
        "tasks": {**info.tasks},
        "events": info.events,
        "size_bytes": info.size_bytes,
        "commit_p95_s": None if info.commits is None else info.commits.quantile(0.95),
    }
    return figures, None
