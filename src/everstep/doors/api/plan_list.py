"""Plans that can be started by name: what they ask for, and how they have fared."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from everstep.domain.plan import PlanSpec
from everstep.domain.states import TERMINAL, TaskStatus
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.request import Response, reply
from everstep.doors.api.sources import find_plan, plan_files
from everstep.ports.store import TaskFilter, TaskSummary
from everstep.wire.fmt import format_yaml
from everstep.wire.plan import digest, read_plan, to_json
from everstep.wire.times import maybe_text

LAST: Final = 20
"""So many ended tasks say how a plan has fared."""


async def list_all(back: Backing, asked: Asked) -> Response:
    """Every plan of the operator's folders that can be read, and every durable function, by name."""
    return reply({"items": [await _row(back, asked, name, spec) for name, spec in _plans(back)], "next_cursor": None})


async def get(back: Backing, asked: Asked) -> Response:
    """One of them, with its plan in normal form, and as somebody would write it."""
    name = asked.params["name"]
    script = back.desk.scripts.get(name)
    spec = script.plan if script is not None else _read(find_plan(name, back.settings.plans_dirs))
    if spec is None:
        return reply({"name": name, "valid": False})
    return reply({**await _row(back, asked, name, spec), "plan": to_json(spec), "plan_text": format_yaml(spec)})


def _plans(back: Backing) -> Iterator[tuple[str, PlanSpec]]:
    """By the name that starts it: a file's may be another than the one written in it."""
    files = plan_files(back.settings.plans_dirs)
    known = {name: script.plan for name, script in back.desk.scripts.items()}
    for name in sorted(files.keys() | known.keys()):
        spec = known[name] if name in known else _read(files[name])
        if spec is not None:
            yield name, spec


def _read(file: Path) -> PlanSpec | None:
    return read_plan(file.read_bytes(), file=str(file)).plan


async def _row(back: Backing, asked: Asked, name: str, spec: PlanSpec) -> JsonObject:
    which = TaskFilter(owner=asked.who.owner, plan_name=spec.name, limit=LAST)
    tasks = (await back.desk.list(which)).items
    ended = [one for one in tasks if one.row.status in TERMINAL]
    lengths = sorted(_length_s(ended))
    done = sum(one.row.status is TaskStatus.COMPLETED for one in ended)
    return {
        "name": name,
        "title": spec.title,
        "description": spec.description,
        "inputs": [{"name": one.name, "schema": one.schema, "required": one.required} for one in spec.inputs],
        "digest": digest(spec),
        "valid": True,
        "last": [
            {"task": one.id, "status": one.row.status.value, "ended_at": maybe_text(one.row.ended_at)} for one in ended
        ],
        "p50": _share(lengths, 0.5),
        "p90": _share(lengths, 0.9),
        "success": done / len(ended) if ended else None,
    }


def _length_s(ended: Sequence[TaskSummary]) -> Iterator[float]:
    for one in ended:
        if one.row.status is TaskStatus.COMPLETED and one.row.ended_at is not None and one.row.started_at is not None:
            yield (one.row.ended_at - one.row.started_at) / 1000


def _share(lengths: Sequence[float], share: float) -> float | None:
    return lengths[min(int(share * len(lengths)), len(lengths) - 1)] if lengths else None
