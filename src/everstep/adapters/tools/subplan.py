"""`plan.run`: a step that is a task of its own. This family only finds the plan; what becomes of it is the engine's."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from everstep.adapters.tools.family import spec_of
from everstep.domain.bindings import compile_value, references
from everstep.domain.plan import Effect
from everstep.domain.values import JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Denied, Misconfigured, Subplan, ToolSpec
from everstep.wire.plan import PLAN_BYTES_MAX, ReadPlan, digest, from_json, read_plan

ENDINGS: Final = (".plan.yaml", ".plan.yml", ".plan.json")

_RUN: Final = spec_of(
    "plan.run",
    "Carry out a plan",
    "Carry out another plan as a task of its own, and wait for its outputs. The wait survives restarts.",
    takes={
        "plan": {
            "anyOf": [{"type": "string", "minLength": 1}, {"type": "object"}],
            "description": "The name of a published plan, a plan file of the workspace, or the plan itself",
            "x-everstep-kind": "checked",
        },
        "inputs": {"type": "object", "default": {}, "description": "Its inputs"},
    },
    needs=("plan",),
    gives=None,
    effect=Effect.IDEMPOTENT,
)


class PlanTools(ToolAdapter):
    """Plans as tools. `folders` are where the operator publishes plans by name, nearest first."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)

    def tools(self) -> Sequence[ToolSpec]:
        """The one."""
        return (_RUN,)

    async def execute(self, call: Call, ctx: Ctx) -> Subplan:
        """Find the plan and read it; the engine makes the task, in the transaction that says so."""
        said, inputs = call.arguments["plan"], call.arguments.get("inputs", {})
        assert isinstance(inputs, dict)
        read, published = await asyncio.to_thread(self._find, said, ctx.workdir)
        if read.plan is None:
            problems = "; ".join(f"{one.path or '/'} {one.message}" for one in read.problems[:3])
            raise Misconfigured(f"the plan has problems: {problems}", code="plan_invalid")
        return Subplan(
            plan=read.plan,
            digest=digest(read.plan),
            inputs=inputs,
            published=published,
            written=_stands_there(ctx.origin.written.get("plan")),
        )

    def _find(self, said: JsonValue, workdir: Path) -> tuple[ReadPlan, bool]:
        if not isinstance(said, str):
            return from_json(said), False
        if said.endswith(ENDINGS) or "/" in said:
            return _read(_inside(workdir, said), said), False
        for folder in self._folders:
            for ending in ENDINGS:
                path = folder / f"{said}{ending}"
                if path.is_file():
                    return _read(path, path.name), True
        raise Misconfigured(f"no plan is published as '{said}'", code="plan_not_found")


def _stands_there(written: JsonValue) -> bool:
    """Whether the plan, or its name, stands in the step without a value from elsewhere in it."""
    return written is not None and not references(compile_value(written))


def _inside(workdir: Path, said: str) -> Path:
    """A file of the workspace; nothing leads out of it."""
    path = (workdir / said).resolve()
    if not path.is_relative_to(workdir.resolve()):
        raise Denied(f"'{said}' is outside the workspace", code="policy_denied")
    return path


def _read(path: Path, said: str) -> ReadPlan:
    try:
        with path.open("rb") as file:
            data = file.read(PLAN_BYTES_MAX + 1)
    except OSError:
        raise Misconfigured(f"'{said}' cannot be read as a plan", code="plan_not_found") from None
    return read_plan(data, file=said)
