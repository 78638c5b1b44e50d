"""`everstep run`: carry out a plan, or go on with it where it stopped."""

from typing import Any, TypeAlias

import click

from everstep.domain.errors import EverstepError
from everstep.doors.cli.checking import asks_line, find_problems, refusal_of
from everstep.doors.cli.connect import Need, Opening, perform_steps
from everstep.doors.cli.lengths import LENGTH
from everstep.doors.cli.outline import outline
from everstep.doors.cli.pursue import Pursuit, as_found, carry_on
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Ask, Connection, ask, asked, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.wanted import Wanted
from everstep.doors.cli.words import about, plural, safe, short

Json: TypeAlias = dict[str, Any]

LIVE = "queued,running,pausing,paused,stalled,cancelling"


@click.command(
    cls=Verb,
    epilog="""
    everstep run brief.plan.yaml -i topic="solar storage"
    everstep run brief -i n:=3 -i text=@notes.txt
    everstep run agent:plan --detach
    """,
)
@click.argument("plan")
@click.option("-i", "--input", "given", metavar="K=V", multiple=True, help="An input; K:=JSON, K=@FILE.")
@click.option("--inputs", metavar="FILE|-", help="Inputs as a JSON object.")
@click.option("--title", metavar="T", help="What to call the task.")
@click.option("--label", "labels", metavar="K=V", multiple=True, help="A label to find it by.")
@click.option("--priority", type=click.IntRange(0, 3), default=1, show_default=True, help="0 goes first.")
@click.option("--key", metavar="KEY", help="Your own id: the same key gives the same task.")
@click.option("--new", is_flag=True, help="Start a new task even if an unfinished one is there.")
@click.option("--until", metavar="STEP", help="Pause after this step.")
@click.option("--timeout", type=LENGTH, metavar="D", help="Stop following after so long, with exit 8.")
@click.option("--detach", is_flag=True, help="Only record it, and say how to go on.")
@click.option("--wait", is_flag=True, help="Stay while it waits for someone.")
@click.option("--dry-run", is_flag=True, help="Show order, effects and stops; start nothing.")
def run(plan: str, **options: Any) -> int:  # noqa: ANN401 -- click's values
    """Carry out PLAN: a file, the name of a plan, or module:attribute.

    If an unfinished task of the same plan and inputs is there, goes on with it.
    """

    async def act(opening: Opening) -> int:
        asking = Wanted.of(plan, options, opening.settings)
        target = asking.target
        judge = await opening.judge(target.tools)
        checked = await find_problems(judge, target, asking.inputs)
        if not checked["valid"]:
            raise refusal_of(target, checked, f"'{plan}' cannot be carried out")
        if options["dry_run"]:
            knowing = await opening.remembering(target.tools)
            wanted = {**target.body(), "inputs": asking.inputs}
            checked["summary"]["estimate"] = (await ask(knowing, "POST", path_of("estimates"), wanted))["task"]
            return dry_run(opening.session, checked, asking, (await ask(judge, "GET", path_of("tools")))["items"])
        connection = await opening.connect(Need.RECORD if options["detach"] else Need.CARRY, target.tools, makes=True)
        return await start(opening, connection, asking, checked)

    return perform_steps(act)


async def start(opening: Opening, connection: Connection, wanted: Wanted, checked: Json) -> int:
    """Record it, or take it up again; then follow it."""
    session, options = opening.session, wanted.options
    headers = {"idempotency-key": options["key"]} if options["key"] else {}
    reply = await asked(connection, Ask(method="POST", path=path_of("tasks"), body=wanted.body(), headers=headers))
    task, taken_up = reply.body, reply.status == 200
    if taken_up:
        task = await lift(connection, task)
    else:
        await name_others(connection, session, task)
    if options["detach"]:
        return left(session, task, connection)
    how = Pursuit(
        waits=options["wait"],
        taken_up=taken_up,
        timeout_s=options["timeout"],
        approves=session.yes,
        remark=None if taken_up else asks_line(checked),
    )
    return await carry_on(opening, connection, task, how)


async def lift(connection: Connection, task: Json) -> Json:
    """Go on with it: a person's pause is lifted, any other stays and is shown; one that is ending meanwhile may."""
    if task["status"] in ("completed", "failed", "cancelled"):
        return task
    try:
        lifted = await ask(connection, "POST", path_of("tasks", task["id"], "resume"), {})
    except EverstepError as error:
        if error.code not in ("answer_needed", "illegal_state"):
            raise
        return task
    return as_found(task, lifted)


async def name_others(connection: Connection, session: Session, task: Json) -> None:
    """The plan was edited since: its unfinished tasks of before are not forgotten."""
    plan = task["plan"]
    page = await ask(connection, "GET", path_of("tasks", plan=plan["name"], status=LIVE, limit=20))
    for other in page["items"]:
        if other["plan"]["digest"] != plan["digest"]:
            name = short(other["id"])
            session.say(
                f"{name} is unfinished with an earlier text of this plan:"
                f" everstep resume {name}, or everstep cancel {name}",
                "dim",
            )


def left(session: Session, task: Json, connection: Connection) -> int:
    """It is recorded; say how to go on."""
    if session.json:
        session.result_json({"type": "result", "ok": True, "exit_code": 0, "task": task})
        return 0
    session.result(task["id"])
    name = short(task["id"])
    carried = "nobody carries it yet: everstep resume" if connection.own else "follow it: everstep watch"
    session.say(f"  {task['status']}; {carried} {name}")
    return 0


def dry_run(session: Session, checked: Json, wanted: Wanted, tools: list[Json]) -> int:
    """What would be done."""
    if session.json:
        session.result_json(checked)
        return 0
    spec = wanted.target.spec
    assert spec is not None, "it was checked"
    count = plural(len(spec.steps) + len(spec.finally_steps), "step")
    session.result(f"{safe(spec.title or spec.name)}   {count}, nothing started")
    for line in outline(spec, tools):
        session.result(line)
    session.result(f"estimate: {about(checked['summary']['estimate'])}")
    if hint := asks_line(checked):
        session.result(hint)
    return 0
