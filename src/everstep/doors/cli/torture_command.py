"""`everstep torture`: kill your own plan at every boundary of its way, and see what comes of it."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from everstep.authoring.durable import DurableFunction
from everstep.domain.errors import EverstepError
from everstep.doors.cli.checking import find_problems, refusal_of
from everstep.doors.cli.confirm import confirm
from everstep.doors.cli.connect import Opening, perform_steps
from everstep.doors.cli.given import read_inputs
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.talk import ask, path_of
from everstep.doors.cli.targets import Target, find_target
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import listed, plural, safe

Json: TypeAlias = dict[str, Any]

SHOWN_MAX: Final = 8
"""Of violations and questions, on one screen; the report has all."""


@click.command(
    cls=Verb,
    epilog="""
    everstep torture brief.plan.yaml -i topic=storage
    everstep torture brief.plan.yaml --real --report torture.json
    everstep torture brief.plan.yaml --points outcome.commit.before:3
    """,
)
@click.argument("plan")
@click.option("-i", "--input", "given", metavar="K=V", multiple=True, help="An input; K:=JSON, K=@FILE.")
@click.option("--inputs", metavar="FILE|-", help="Inputs as a JSON object.")
@click.option("--answers", metavar="FILE", help="By step: the answer to what it asks, or what its stand-in returns.")
@click.option("--real", is_flag=True, help="Call the tools, in a copy of this folder; else stand-ins.")
@click.option("--points", metavar="all|N|NAME", default="all", show_default=True, help="At which boundaries.")
@click.option("--kills", type=click.IntRange(0, 100_000), default=10, show_default=True, help="Random ones besides.")
@click.option("--seed", type=int, default=1, show_default=True, help="Which moments.")
@click.option("--report", metavar="FILE", help="Write everything there as JSON.")
def torture(plan: str, **options: Any) -> int:  # noqa: ANN401 -- click's values
    """Kill PLAN at every boundary, carry it on, and hold it against the invariants. Never touches your store.

    Tools are stand-ins unless --real is given. Exit 1 on a violation.
    """
    current = session()
    order: Json = {}
    once: list[str] = []
    config = current.config and str(Path(current.config).absolute())

    async def look(opening: Opening) -> int:
        target = find_target(plan, opening.settings)
        inputs = read_inputs(options["given"], options["inputs"], target.spec)
        judge = await opening.judge(target.tools)
        checked = await find_problems(judge, target, inputs)
        if not checked["valid"]:
            raise refusal_of(target, checked, f"'{plan}' cannot be carried out")
        known = {one["name"]: one for one in (await ask(judge, "GET", path_of("tools")))["items"]}
        once.extend(once_tools(target, known))
        order.update(
            plan=place_of(target, opening.settings.base),
            inputs=inputs,
            said=read_inputs((), options["answers"], None) if options["answers"] else {},
            real=options["real"],
            config=config,
        )
        order["base"] = str(opening.settings.base)
        return 0

    perform_steps(look)
    if options["real"] and once:
        confirm(current, f"this really calls {listed(once)}, again and again", f"everstep torture {plan} --real")
    return besiege(current, plan, order, options)


def once_tools(target: Target, known: Json) -> list[str]:
    """Tools of the plan whose calls nobody can take back."""
    steps = target.spec.steps if target.spec is not None else ()
    names = sorted({step.tool for step in steps if step.tool is not None})
    return [name for name in names if known.get(name, {}).get("effect", "once") == "once" and name != "ask"]


def place_of(target: Target, base: Path) -> str:
    """The plan as another process in the project folder finds it."""
    if target.plan is not None:
        if isinstance(target.plan, DurableFunction) and ":" not in target.said:
            raise EverstepError(
                f"'{target.said}' is a function", code="bad_request", what_to_do="write module:function"
            )
        return target.said
    assert target.file is not None
    return os.path.relpath(Path(target.file).absolute(), base)


def besiege(session: Session, plan: str, order: Json, options: Json) -> int:
    """In a process of its own, which forks one for every life."""
    base = order.pop("base")
    said = {"order": order, **{name: options[name] for name in ("points", "kills", "seed")}}
    trials: list[Json] = []
    report: Json = {}
    for line in lines_of(said, base):
        if "refused" in line:
            raise EverstepError(
                f"'{safe(plan)}' does not even come to its end undisturbed",
                code="bad_request",
                what_to_do='say what its steps return or answer: --answers FILE with {"STEP": VALUE, …}',
                details={"why": line["refused"]},
            )
        if "report" in line:
            report = line["report"]
        else:
            trials.append(line)
            for what in line["violations"]:
                session.say(f"  {line['point']}: {safe(what)}", "red")
    if not report:
        raise EverstepError("the siege broke off", code="internal", what_to_do="see the lines above")
    if options["report"]:
        Path(options["report"]).write_text(json.dumps({**report, "trials": trials}, indent=1), encoding="utf-8")
    code = 1 if report["violations"] else 0
    if session.json:
        session.result_json({"type": "result", "ok": not code, "exit_code": code, **report})
    else:
        for text in screen(plan, report, options):
            session.result(text)
    return code


def lines_of(said: Json, base: str) -> Iterator[Json]:
    """What the siege tells, as it goes on."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(said, file)
        file.flush()
        command = [sys.executable, "-m", "everstep.torture.siege", file.name]
        with subprocess.Popen(command, cwd=base, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603 -- our own program
            assert process.stdout is not None
            for line in process.stdout:
                yield json.loads(line)


def screen(plan: str, report: Json, options: Json) -> Iterator[str]:
    """The report on one screen."""
    tools = "real tools in a copy of this folder" if options["real"] else "stand-ins for its tools (--real calls them)"
    yield f"{safe(plan)}   {tools}"
    found, recovery = report["violations"], report["recovery_s"]
    yield (
        f"  boundaries {report['points']} · kills {report['kills']} · violations {len(found)}"
        f" · `once` calls repeated unasked {report['repeated_once']}"
    )
    if recovery:
        yield f"  moving again after {recovery['p50']:.2f} s (median), {recovery['p95']:.2f} s (95 of 100)"
    if report["unreached"]:
        yield f"  {plural(report['unreached'], 'trial')} ended before the kill"
    if report["varies"]:
        yield f"  differs by itself, not compared: {safe(listed(report['varies']))}"
    for one in found[:SHOWN_MAX]:
        yield f"  {one['check']} at {one['point']}: {safe(one['what'])}"
        yield f"    again: everstep torture {safe(plan)}{' --real' if options['real'] else ''} --points {one['point']}"
    for one in report["questions"][:SHOWN_MAX]:
        where = f"{safe(one['step'])} ({safe(one['tool'])}, {one['effect']})"
        yield f"  a crash inside {where} would ask a person: {one['advice']}"
    if not report["questions"]:
        yield "  no crash would ask a person"
    yield "FAIL" if found else "PASS"
