"""What a step allows a process, what the attempt keeps of it, and which of its ends are not its own."""

from collections.abc import Mapping
from dataclasses import field
from typing import Final
from weakref import WeakValueDictionary

from everstep.adapters.isolation.child import Bounds, Child, Ended
from everstep.adapters.isolation.program import OUTPUT_BYTES, Together
from everstep.adapters.isolation.started import Spares
from everstep.adapters.isolation.watch import Over
from everstep.domain.ids import Millis
from everstep.domain.limits import lower
from everstep.domain.plan import LimitsSpec
from everstep.domain.record import record
from everstep.domain.usage import Measured
from everstep.domain.values import JsonObject
from everstep.ports.tool import LIMIT_CODES, Ctx, Denied, ToolError
from everstep.settings import Settings


@record
class Walls:
    """Whom programs run as, and what the operator wants around them."""

    uid: int | None = None
    require: Mapping[str, str] = field(default_factory=dict)
    spares: Spares = field(default_factory=Spares)
    """For functions with a process of their own."""

    def needed(self, tool: str, *, trusted: bool) -> str:
        """`restricted`, or as strong as the platform offers."""
        return self.require.get(tool, "" if trusted else "restricted")


def walls_of(settings: Settings) -> Walls:
    """What stands around programs."""
    uid = settings.said["containment.uid_base"].value
    wanted = settings.tables("containment.require")
    require = {f"{family}.{name}": str(level) for family, levels in wanted.items() for name, level in levels.items()}
    return Walls(uid=uid if isinstance(uid, int) and uid else None, require=require)


def bounds_of(ctx: Ctx) -> Bounds:
    """What the step says, else the usual; and no more than is left for its task."""
    usual, said, left = Bounds(), ctx.bounds or LimitsSpec(), ctx.left
    cpu_ms = lower(said.cpu_time_ms or Millis(round(usual.cpu_s * 1000)), left.cpu_time_ms)
    disk = lower(said.disk_bytes or usual.disk_bytes, left.disk_bytes)
    return Bounds(
        memory_bytes=lower(said.memory_bytes or usual.memory_bytes, left.memory_bytes) or usual.memory_bytes,
        cpu_s=usual.cpu_s if cpu_ms is None else cpu_ms / 1000,
        output_bytes=min(said.output_bytes or OUTPUT_BYTES, OUTPUT_BYTES),
        disk_bytes=disk or usual.disk_bytes,
        together=_together(ctx),
        nearing=ctx.nearing,
    )


_LIVE: Final[WeakValueDictionary[str, Together]] = WeakValueDictionary()
"""By task, as long as one of its programs runs here."""


def _together(ctx: Ctx) -> Together | None:
    most = ctx.left.memory_bytes
    if most is None:
        return None
    found = _LIVE.get(ctx.task_id)
    if found is None:
        found = _LIVE[ctx.task_id] = Together(most)
    found.max_bytes = most
    return found


async def ran(child: Child, ctx: Ctx) -> Ended:
    """How it ended. What it used is told, also of one that had to be ended: nobody pays less for that."""
    try:
        return await child.run()
    finally:
        if (ended := child.ended) is not None:
            ctx.measured(measured(ended))
            if ended.disk_bytes:
                ctx.usage(disk_bytes=ended.disk_bytes)


def measured(ended: Ended) -> Measured:
    """What the attempt keeps of it."""
    return Measured(
        cpu_s=round(ended.cpu_s, 3),
        memory_peak_bytes=ended.memory_peak_bytes,
        bytes_out=ended.stdout.size_bytes + ended.stderr.size_bytes,
        files_open=ended.files,
        containment=ended.containment,
    )


class Exceeded(ToolError):
    """A process used more than it may, and was ended."""

    category = "resource"


def refuse_broken(ended: Ended, tool: str) -> None:
    """Ends that are not the program's own."""
    if ended.refused:
        raise Denied(
            f"'{tool}' needs walls that cannot be built here: {', '.join(ended.refused)}",
            code="containment_unavailable",
            what_to_do=f'if it may run without: [containment] require = {{"{tool}" = "limited"}}',
        )
    if ended.over is not None:
        raise exceeded(ended.over, ended)
    if not ended.gone:
        raise Exceeded("a process of this call could not be ended", code="process_lost", effect_state="unknown")


def exceeded(over: Over, ended: Ended) -> Exceeded:
    """It used more than it may: which limit, how much, and the most memory it had."""
    name, used, most = over
    peak = ended.memory_peak_bytes
    details: JsonObject = {"limit": name, "used": used, "max": most, "excess": used - most, "peak": peak}
    return Exceeded(
        f"the process used {used:,.0f} of {name}, {used - most:,.0f} more than the {most:,.0f} that are allowed; "
        f"its memory was {peak:,} at most",
        code=LIMIT_CODES.get(name, f"limit_{name}"),
        details=details,
        effect_state="unknown",
    )
