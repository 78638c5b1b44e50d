"""What the plan check found, put into words: problems with their lines, and what a crash would ask."""

from typing import Any, TypeAlias

from everstep.doors.cli.refusal import PlanRefused, problem_of
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.targets import Target
from everstep.doors.cli.words import listed, plural
from everstep.wire.show import show
from everstep.wire.source import Source

Json: TypeAlias = dict[str, Any]


async def find_problems(connection: Connection, target: Target, inputs: Json | None = None) -> Json:
    """Everything that is wrong with a plan (and its inputs), and what it would do."""
    more = {} if inputs is None else {"inputs": inputs}
    return await ask(connection, "POST", path_of("plans", "check"), {**target.body(), **more})


def refusal_of(target: Target, found: Json, message: str) -> PlanRefused:
    """The refusal of a plan, with its text at hand."""
    return PlanRefused(message, found["problems"], text=target.text, file=target.file)


def asks_line(found: Json) -> str | None:
    """Which steps a crash would ask about, in one line."""
    names = [one if isinstance(one, str) else one["step"] for one in (found.get("summary") or {}).get("asks") or ()]
    return f"a crash or timeout inside {listed(names)} would ask you whether it happened" if names else None


def tell_checked(session: Session, target: Target, found: Json, *, invalid: bool) -> None:
    """Problems with their lines, or that there are none."""
    problems = [problem_of(one, target.file) for one in found["problems"]]
    if problems:
        source = Source(target.text, target.file) if target.text is not None else None
        session.result(show(problems, source).rstrip("\n"))
    name = target.file or target.said
    if invalid:
        session.warn(f"{name}: {plural(len(problems), 'problem')}", "red")
        return
    session.result(f"{name}: ok, {_length(target, found.get('summary') or {})}")
    for line in reach_lines(found.get("summary") or {}):
        session.result(f"  {line}")
    if hint := asks_line(found):
        session.result(f"  {hint}")


def _length(target: Target, summary: Json) -> str:
    if target.spec is not None and target.spec.durable is not None:
        return "a function; its calls are checked as it makes them"
    return plural(summary.get("steps") or 0, "step")


def reach_lines(summary: Json) -> list[str]:
    """What it would touch, as far as there is anything to say."""
    effects = [f"{plural(count, 'step')} {effect}" for effect, count in (summary.get("effects") or {}).items()]
    places = [
        f"{one['step']}.{one['argument']} from {one['from']}{' (asks first)' if one['asks'] else ''}"
        for one in summary.get("untrusted") or ()
    ]
    told = {
        "effects": effects if effects and [*summary["effects"]] != ["pure"] else [],
        "asks before": summary.get("approvals") or [],
        "secrets": summary.get("secrets") or [],
        "data from outside reaches": places,
    }
    return [f"{what}: {', '.join(said)}" for what, said in told.items() if said]
