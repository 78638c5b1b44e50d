"""`everstep stats`: how it went, what was slow, what has become slower; of all plans, one plan, or one task."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import click

from everstep.domain.errors import EverstepError
from everstep.doors.cli.connect import Need, perform
from everstep.doors.cli.find import LAST, find_task
from everstep.doors.cli.session import Session, width
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.view import TERMINAL
from everstep.doors.cli.words import cells, cut, pad, plural, safe, seconds, short

Json: TypeAlias = dict[str, Any]

ROWS_MAX: Final = 12
BAR: Final = 20
NARROW: Final = 8


@click.command(
    cls=Verb,
    epilog="everstep stats --since 7d\neverstep stats research-brief\neverstep stats @last",
)
@click.argument("subject", metavar="[PLAN|TASK]", required=False)
@click.option("--since", metavar="D", help="How far back: 1h to 30d [24h].")
def stats(subject: str | None, since: str | None) -> int:
    """Show success, times and what is slow: of everything, of a PLAN, or of one TASK."""

    async def act(connection: Connection, session: Session) -> int:
        task = None if subject is None else await _task(connection, subject)
        if task is not None and since is not None:
            raise click.UsageError("--since goes without a task: a task is shown from its beginning")
        path = path_of("stats", range=since, plan=subject) if task is None else path_of("stats", task=task)
        told = await ask(connection, "GET", path)
        if session.json:
            session.result_json(told)
            return 0
        for line in overview(told) if task is None else report(told):
            session.result(cut(line, width()))
        return 0

    return perform(Need.LOOK, act)


async def _task(connection: Connection, subject: str) -> str | None:
    """The task that is meant; None: it is the name of a plan."""
    if subject.startswith("t_") or subject == LAST:
        return str((await find_task(connection, subject))["id"])
    named = await ask(connection, "GET", path_of("tasks", plan=subject, limit=1))
    if named["items"]:
        return None
    try:
        return str((await find_task(connection, subject))["id"])
    except EverstepError as error:
        raise EverstepError(
            f"there is no task of a plan '{subject}', and none with that key", code=error.code, what_to_do="everstep ls"
        ) from error


def overview(told: Json) -> list[str]:
    """Everything over some hours, on a screen or two."""
    tasks, calls = told["tasks"], told["calls"]
    now = ", ".join(f"{count} {status}" for status, count in tasks["now"].items() if count and status not in TERMINAL)
    ended = sum(tasks["ended"].values())
    of_plan = f" of {safe(told['plan'])}" if told.get("plan") else ""
    well = f"{plural(ended, 'task')} ended{_well(tasks['success'])}"
    retries = f"{calls['retries']} {'retry' if calls['retries'] == 1 else 'retries'}"
    made = f"{plural(calls['n'], 'call')}{_well(calls['success'])}, {retries}"
    lines = [f"last {_span(told['hours'])}{of_plan}: {well}", made, *([f"now: {now}"] if now else [])]
    lines += _section("PLAN", ("TASKS", "OK", "P50", "P90", "P99"), [_plan(one) for one in told["plans"]])
    lines += _section(
        "TOOL", ("CALLS", "OK", "P50", "P90", "P99", "RETRIES", "TIME"), [_tool(one) for one in told["tools"]]
    )
    lines += _section("STEPS BY TIME", ("CALLS", "P50", "P90", "TIME"), [_step(one) for one in told["steps"][:5]])
    lines += _shares("WHERE THE TIME WENT", told["phases"], "phase")
    if approvals := told["approval_wait"]["n"]:
        wait = told["approval_wait"]
        waited = f"waited {length(wait['p50'])} (p90 {length(wait['p90'])})"
        refused = "" if wait["rejects"] is None else f", {percent(wait['rejects'])} rejected"
        lines += ["", f"approvals: {approvals}, {waited}{refused}"]
    for one in told["regressions"]:
        was, is_now = length(one["before_s"]), length(one["now_s"])
        lines += [
            "",
            f"slower: step {safe(one['step'])} of {safe(one['plan'])} ({safe(one['tool'])}) took {was}, takes {is_now}",
        ]
    if judged := told["calibration"]["n"]:
        lines += ["", f"estimates: {percent(told['calibration']['covered'])} of {judged} tasks ended inside p10-p90"]
    return lines


def report(told: Json) -> list[str]:
    """One task: where its time went, and the way that decided when it ended."""
    lines = [f"{safe(told['plan'])}   {short(told['task'])}   {told['status']} after {length(told['wall_s'])}"]
    lines += _shares("PHASE", told["phases"], "phase")
    lines += _shares("TOOL", told["tools"], "tool")
    way = [
        (
            f"{safe(leg['step'])}{'  <- slowest' if leg['step'] == told['slowest_step'] else ''}",
            safe(leg["tool"] or ""),
            length(leg["waited_s"]),
            length(leg["took_s"]),
        )
        for leg in told["critical_path"]
    ]
    return lines + _section("CRITICAL PATH", ("TOOL", "WAITED", "TOOK"), way)


def _plan(one: Json) -> tuple[str, ...]:
    return (safe(one["plan"]), str(one["n"]), percent(one["success"]), *_times(one))


def _tool(one: Json) -> tuple[str, ...]:
    name, retries = safe(one["tool"]), str(one["retries"])
    return (name, str(one["n"]), percent(one["success"]), *_times(one), retries, length(one["total_s"]))


def _step(one: Json) -> tuple[str, ...]:
    p50, p90, _ = _times(one)
    return (f"{safe(one['plan'])} / {safe(one['step'])}", str(one["n"]), p50, p90, length(one["total_s"]))


def _times(one: Json) -> tuple[str, str, str]:
    return length(one["p50"]), length(one["p90"]), length(one["p99"])


def _section(title: str, columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """A table whose first column gives way; figures stand right."""
    if not rows:
        return []
    shown = [(title, *columns), *rows[:ROWS_MAX]]
    sizes = [max(cells(row[at]) for row in shown) for at in range(1, len(columns) + 1)]
    first = min(max(cells(row[0]) for row in shown), max(width() - sum(sizes) - 2 * len(sizes), NARROW))
    lines = [
        "".join([pad(row[0], first), *(f"  {cell:>{wide}}" for cell, wide in zip(row[1:], sizes, strict=True))])
        for row in shown
    ]
    more = len(rows) - ROWS_MAX
    return ["", *lines, *([f"… and {more} more: --json has all"] if more > 0 else [])]


def _shares(title: str, rows: Sequence[Json], name: str) -> list[str]:
    if not rows:
        return []
    shown = [row for row in rows if row["share"] is not None][:ROWS_MAX]
    wide = max(len(title), *(cells(safe(row[name])) for row in shown)) if shown else 0
    lines = [f"{pad(safe(row[name]), wide)}  {_share(row)}" for row in shown]
    return ["", title, *(line.rstrip() for line in lines)] if lines else []


def _share(row: Json) -> str:
    return f"{percent(row['share']):>6}  {length(row['total_s']):>7}  {'=' * round(BAR * row['share'])}"


def _well(share: float | None) -> str:
    """Of nothing there is no share."""
    return "" if share is None else f", {percent(share)} well"


def percent(share: float | None) -> str:
    """`97 %`, and never 100 for less than all."""
    if share is None:
        return "-"
    text = f"{share * 100:.0f} %"
    return "99.9 %" if text == "100 %" and share < 1 else text


def length(value: float | None) -> str:
    """A time as short as it can be said: milliseconds below a tenth of a second."""
    if value is None:
        return "-"
    return f"{value * 1000:.0f}ms" if value < 0.1 else seconds(value)


def _span(hours: int) -> str:
    return "hour" if hours == 1 else f"{hours} h" if hours <= 48 or hours % 24 else f"{hours // 24} days"
