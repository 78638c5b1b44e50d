"""`everstep pause`, `resume`, `cancel`: commands to a task, each durable before it is answered."""

from typing import Any, Final, TypeAlias

import click

from everstep.domain.errors import EverstepError
from everstep.doors.cli.connect import Need, Opening, perform, perform_steps
from everstep.doors.cli.endings import EXIT_UNFINISHED
from everstep.doors.cli.find import find_task
from everstep.doors.cli.pursue import Pursuit, as_found, carry_on
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.view import TERMINAL
from everstep.doors.cli.words import safe, short

Json: TypeAlias = dict[str, Any]

_NOTE: Final = click.option("--note", metavar="T", help="Why; kept in the journal.")
_ALL: Final = click.option("--all", "everything", is_flag=True, help="Every task of the store, now and later.")
_WAIT: Final = click.option("--wait", is_flag=True, help="Follow it until it stands still.")


@click.command(cls=Verb, epilog="everstep pause @last --now\neverstep pause --all --note 'until the release is out'")
@click.argument("task", required=False)
@_ALL
@click.option("--now", is_flag=True, help="Cut off calls that may be made again, instead of letting them end.")
@_WAIT
@_NOTE
def pause(task: str | None, note: str | None, *, now: bool, wait: bool, everything: bool) -> int:
    """Stop a task, or everything, at the next safe point. Nothing is lost, and nothing starts before `resume`."""
    if one_or_all(task, everything=everything) is None:
        mode = "immediate" if now else "graceful"
        return halt({"on": True, "mode": mode, **noted(note)}, "everything stands still", "everstep resume --all")

    async def act(opening: Opening) -> int:
        connection = await opening.connect(Need.RECORD)
        found = await find_task(connection, str(task))
        asked = {**noted(note), "mode": "immediate" if now else "graceful"}
        after = await ask(connection, "POST", path_of("tasks", found["id"], "pause"), asked)
        if now and after["waits_for"]:
            steps = ", ".join(safe(step) for step in after["waits_for"])
            opening.session.say(f"  waits for {steps}: what must not be repeated is let end")
        if wait and after["status"] not in ("paused", *TERMINAL):
            code = await carry_on(opening, connection, after, Pursuit())
            return 0 if code == EXIT_UNFINISHED else code  # standing still is what was asked for
        return tell(opening.session, after, f"resume it: everstep resume {short(after['id'])}")

    return perform_steps(act)


@click.command(cls=Verb, epilog="everstep resume @last\neverstep resume t_7k2m9qx4 --detach")
@click.argument("task", required=False)
@_ALL
@_WAIT
@click.option("--detach", is_flag=True, help="Only record it; whoever opens the store next carries it.")
@_NOTE
def resume(task: str | None, note: str | None, *, wait: bool, detach: bool, everything: bool) -> int:
    """Go on with a task, or with everything: lift its pause, and carry it if nobody else does."""
    if one_or_all(task, everything=everything) is None:
        return halt({"on": False}, "everything goes on", "everstep ls")

    async def act(opening: Opening) -> int:
        connection = await opening.connect(Need.RECORD if detach else Need.CARRY)
        found = await find_task(connection, str(task))
        after = await ask(connection, "POST", path_of("tasks", found["id"], "resume"), noted(note))
        if (wait or connection.own) and not detach:
            return await carry_on(opening, connection, as_found(found, after), Pursuit(waits=wait, taken_up=True))
        return tell(opening.session, after, f"follow it: everstep watch {short(after['id'])}")

    return perform_steps(act)


@click.command(cls=Verb, epilog="everstep cancel @last\neverstep cancel t_7k2m9qx4 t_3h8d --note 'not needed'")
@click.argument("tasks", nargs=-1, required=True)
@_NOTE
def cancel(tasks: tuple[str, ...], note: str | None) -> int:
    """End tasks on request. Calls in flight are ended, then the plan's `finally` steps follow."""

    async def act(connection: Connection, session: Session) -> int:
        ended = []
        for one in tasks:
            found = await find_task(connection, one)
            after = await ask(connection, "POST", path_of("tasks", found["id"], "cancel"), noted(note))
            if connection.own and after["status"] not in TERMINAL:
                after = await until_ended(connection, after)
            ended.append(after)
        if session.json:
            session.result_json(ended[0] if len(ended) == 1 else {"items": ended})
        else:
            for after in ended:
                tell(session, after, f"look: everstep show {short(after['id'])}")
        return 0

    return perform(Need.CARRY, act)


def one_or_all(task: str | None, *, everything: bool) -> str | None:
    """The task that is named; None for all of them. Naming both or neither is refused."""
    if (task is None) != everything:
        raise EverstepError("name one task, or say --all", code="bad_request", what_to_do="see: everstep ls")
    return task


def halt(body: Json, done: str, then: str) -> int:
    """Let everything stand still, or go on."""

    async def act(connection: Connection, session: Session) -> int:
        after = await ask(connection, "PUT", path_of("halt"), body)
        if session.json:
            session.result_json(after)
        else:
            session.result(done)
            session.say(f"  then: {then}")
        return 0

    return perform(Need.RECORD, act)


async def until_ended(connection: Connection, task: Json) -> Json:
    """Stay while calls end and `finally` steps are carried out: nobody else would."""
    async for frame in connection.stream(path_of("tasks", task["id"], "events", after=task["seq"], until="end")):
        if (frame.get("event") or {}).get("type") == "task.cancelled":
            break
    return await ask(connection, "GET", path_of("tasks", task["id"]))


def noted(note: str | None) -> Json:
    """A body with the note, if there is one."""
    return {} if note is None else {"note": note}


def tell(session: Session, task: Json, then: str) -> int:
    """How the task stands after the command."""
    if session.json:
        session.result_json(task)
    else:
        session.result(f"{short(task['id'])}  {task['status']}  {safe(task.get('title') or '')}")
        session.say(f"  {then}")
    return 0
