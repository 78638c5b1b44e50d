"""Where a request's plan comes from: an object, a text, or a name that the operator's folders or functions have.

Only the last is trusted by itself, and what the operator names by its digest; the local door may vouch for a file that
the same user's command has read.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from everstep.domain.errors import NotFound, PlanError, Validation
from everstep.domain.ids import Digest
from everstep.domain.plan import PlanSpec
from everstep.domain.problem import Problem, worst
from everstep.domain.record import record
from everstep.domain.suggest import did_you_mean, suggest
from everstep.doors.api.context import Asked, Backing
from everstep.wire.plan import ReadPlan, digest, from_json, read_plan

ENDINGS: Final = (".plan.yaml", ".plan.yml", ".plan.json")
WAYS: Final = ("plan", "plan_text", "plan_name")
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")


@record
class Source:
    """A plan as it came, and whether the operator stands behind it."""

    read: ReadPlan
    trusted: bool


@record
class RequestedPlan:
    """A plan without problems."""

    spec: PlanSpec
    digest: Digest
    trusted: bool


def requested_plan(back: Backing, asked: Asked) -> RequestedPlan:
    """The plan of a request; raises PlanError with every problem and its place."""
    source = plan_source(back, asked)
    found = problems_of(back, source)
    if source.read.plan is None or worst(found):
        raise PlanError("the plan has problems", found)
    return RequestedPlan(spec=source.read.plan, digest=digest(source.read.plan), trusted=source.trusted)


def problems_of(back: Backing, source: Source) -> tuple[Problem, ...]:
    """Everything that is wrong with it here; a durable function is checked call by call, as it makes them."""
    if source.read.plan is not None and source.read.plan.durable is not None:
        return ()
    return source.read.checked(lambda spec: back.desk.check(spec, trusted=source.trusted))


def plan_source(back: Backing, asked: Asked) -> Source:
    """The plan as it came; raises where there is none, or more than one."""
    fields = asked.fields
    given = [way for way in WAYS if way in fields]
    if len(given) != 1:
        raise Validation(f"give exactly one of {', '.join(WAYS)}")
    vouched = fields.flag("trusted")
    match given[0]:
        case "plan":
            return _sent(back, from_json(fields.value("plan")), vouched=vouched)
        case "plan_text":
            return _sent(back, read_plan(fields.some_text("plan_text"), file=fields.text("file")), vouched=vouched)
        case _:
            name = fields.some_text("plan_name")
            if name in back.desk.scripts:
                return Source(read=ReadPlan(plan=back.desk.scripts[name].plan, problems=()), trusted=True)
            file = find_plan(name, back.settings.plans_dirs)
            return Source(read=read_plan(file.read_bytes(), file=str(file)), trusted=True)


def _sent(back: Backing, read: ReadPlan, *, vouched: bool) -> Source:
    """A plan that somebody has sent."""
    known = back.settings.plans_trusted
    return Source(read=read, trusted=vouched or bool(known and read.plan is not None and digest(read.plan) in known))


def find_plan(name: str, folders: Iterable[Path]) -> Path:
    """The file of a plan; raises NotFound with the closest name."""
    if not _NAME.fullmatch(name):
        raise Validation(f"'{name}' is no name of a plan")
    files = plan_files(folders)
    if name in files:
        return files[name]
    raise NotFound(
        did_you_mean(f"no plan '{name}'", suggest(name, files)), what_to_do="see `plans.dirs` in everstep.toml"
    )


def plan_files(folders: Iterable[Path]) -> dict[str, Path]:
    """Name -> file; the first folder that has a name wins, and in it the first ending."""
    found: dict[str, Path] = {}
    for folder in folders:
        entries = sorted(folder.iterdir()) if folder.is_dir() else []
        for ending in ENDINGS:
            for file in entries:
                if file.name.endswith(ending):
                    found.setdefault(file.name.removesuffix(ending), file)
    return found
