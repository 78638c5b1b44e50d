"""Follow a task to its end, from the task as it stands to the exit code: what `run`, `resume`, `answer` share."""

from typing import Any, TypeAlias

from everstep.domain.errors import SettingsError
from everstep.domain.record import record
from everstep.doors.cli.connect import Opening
from everstep.doors.cli.endings import close_with
from everstep.doors.cli.follow import Follower, Manner
from everstep.doors.cli.screens import screen_of
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.view import ENDED, TaskView
from everstep.doors.cli.words import listed, safe, short

Json: TypeAlias = dict[str, Any]


@record
class Pursuit:
    """How a task is followed by the one who wants it done."""

    waits: bool = False
    taken_up: bool = False
    timeout_s: float | None = None
    approves: bool = False
    remark: str | None = None


async def carry_on(opening: Opening, connection: Connection, task: Json, how: Pursuit) -> int:
    """Follow it as the one who wants it done: Ctrl-C pauses it."""
    session = opening.session
    if connection.own:
        await must_have_tools(connection, task)
    view = await view_of(connection, task)
    if how.taken_up:  # what a person asked for was lifted a moment ago
        view.pauses = {name: one for name, one in view.pauses.items() if one["reason"]["type"] != "userRequested"}
    manner = Manner(
        waits=how.waits,
        asks=session.asks,
        pauses=True,
        approves=how.approves,
        timeout_s=how.timeout_s,
        reconnect=opening.reconnect(view.id),
    )
    screen = screen_of(session)
    screen.begin(view, taken_up=how.taken_up)
    on = (task.get("explain") or {}).get("waiting_on") or {}
    if on.get("kind") == "halt":
        session.warn(f"Everything stands still ({safe(on['detail'])}); go on: everstep resume --all")
    if how.remark:
        screen.remark(((f"    {how.remark}", "dim"),))
    follower = Follower(connection, view, screen, session, manner)
    code = await close_with(follower, await follower.follow())
    if follower.connection.own:
        await tell_of_others(follower.connection, session, view.id)
    return code


def as_found(found: Json, after: Json) -> Json:
    """Follow from where it was found, so that nothing is missed; a pause that was just lifted is no news."""
    return after if found["status"] in ("paused", "pausing") else found


async def must_have_tools(connection: Connection, task: Json) -> None:
    """A task whose tools are not here would wait for ever: say so instead."""
    if missing := await lacking(connection, task):
        raise SettingsError(
            f"{short(task['id'])} waits for {listed(missing)}, which this project does not have",
            what_to_do='run the program that has it, or name its module in everstep.toml: tools = ["MODULE"]',
        )


async def lacking(connection: Connection, task: Json) -> list[str]:
    """What this task needs and the engine that is asked does not have."""
    known = {tool["name"] for tool in (await ask(connection, "GET", path_of("tools")))["items"]}
    wanted = {step["tool"] for step in task.get("steps") or () if step.get("tool") and step["status"] not in ENDED}
    shown = await ask(connection, "GET", path_of("tasks", task["id"], include="plan"))
    if "durable" in shown["plan_source"]:
        known |= {plan["name"] for plan in (await ask(connection, "GET", path_of("plans")))["items"]}
        wanted.add(task["plan"]["name"])
    return sorted(wanted - known)


async def view_of(connection: Connection, task: Json) -> TaskView:
    """The task with every open pause, not only the oldest."""
    view = TaskView.of(task)
    if len(task.get("pauses") or ()) > 1:
        page = await ask(connection, "GET", path_of("inbox", task=view.id))
        view.pauses = {pause["id"]: pause for pause in page["items"]}
    return view


async def tell_of_others(connection: Connection, session: Session, task: str) -> None:
    """A foreground engine carries its own task only; say what else waits for one."""
    page = await ask(connection, "GET", path_of("tasks", status="queued,stalled,cancelling", limit=100))
    others = [item["id"] for item in page["items"] if item["id"] != task]
    if others:
        many = len(others) > 1
        count = f"{len(others)} other unfinished tasks wait" if many else "1 other unfinished task waits"
        session.say(f"{count}; carry {'them' if many else 'it'}: everstep worker", "dim")
