"""`everstep retry`, `fork`, `patch`, `undo`: a task taken up again, copied, changed or taken back."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import click

from everstep.domain.errors import Conflict, EverstepError
from everstep.doors.cli.connect import Need, Opening, perform, perform_steps
from everstep.doors.cli.find import find_task
from everstep.doors.cli.given import json_of, json_of_file, split_input, typed
from everstep.doors.cli.pursue import Pursuit, carry_on
from everstep.doors.cli.refusal import PlanRefused
from everstep.doors.cli.session import Session
from everstep.doors.cli.steer_command import tell
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import listed, safe, short

Json: TypeAlias = dict[str, Any]

_NOTE: Final = click.option("--note", metavar="T", help="Why; kept in the journal.")
_WAIT: Final = click.option("--wait", is_flag=True, help="Follow it until it stands still.")
_DETACH: Final = click.option("--detach", is_flag=True, help="Only record it; whoever opens the store next carries it.")
_DRY: Final = click.option("--dry-run", is_flag=True, help="Only say what it would mean.")
_SET: Final = click.option("--set", "given", metavar="STEP.ARG=V", multiple=True, help="Another argument; also :=JSON.")


def _how(command: Callable[..., int]) -> Callable[..., int]:
    """The options that all of them take."""
    for option in (_NOTE, _DETACH, _WAIT, _DRY):
        command = option(command)
    return command


@click.command(cls=Verb, epilog="everstep retry @last\neverstep retry t_7k2m9qx4 --from draft --set draft.sentences:=3")
@click.argument("task")
@click.option("--from", "from_step", metavar="STEP", help="Where to begin [the first step that failed].")
@_SET
@_how
def retry(task: str, from_step: str | None, given: tuple[str, ...], **how: Any) -> int:  # noqa: ANN401 -- click's own
    """Do a failed or completed task again from a step. What came before stands, and is not called again."""

    async def act(opening: Opening) -> int:
        connection = await opening.connect(Need.RECORD if how["detach"] or how["dry_run"] else Need.CARRY)
        found = await find_task(connection, task)
        body = _body(from_step=from_step, arguments=await _arguments(connection, found, given), note=how["note"])
        path = path_of("tasks", found["id"], "retry")
        means = await ask(connection, "POST", path, {**body, "dry_run": True})
        if how["dry_run"]:
            return _show_again(opening.session, means)
        if means["repeats"]:
            _confirm(opening.session, means, f"everstep retry {short(found['id'])}")
        after = await ask(connection, "POST", path, {**body, "confirm_effects": True})
        return await _follow(opening, connection, after, how)

    return perform_steps(act)


@click.command(cls=Verb, epilog="everstep fork @last --from draft\neverstep fork t_7k2m9qx4 --from draft -i topic=wind")
@click.argument("task")
@click.option("--from", "from_step", metavar="STEP", required=True, help="The first step that is done anew.")
@click.option("-i", "inputs", metavar="K=V", multiple=True, help="Another input; also K:=JSON, K=@FILE.")
@_SET
@click.option("--title", metavar="T", help="What the new task is called.")
@_how
def fork(task: str, from_step: str, inputs: tuple[str, ...], given: tuple[str, ...], **how: Any) -> int:  # noqa: ANN401
    """Make a new task that begins with the outcomes another one has. The other stays as it is."""

    async def act(opening: Opening) -> int:
        connection = await opening.connect(Need.RECORD if how["detach"] or how["dry_run"] else Need.CARRY)
        found = await find_task(connection, task)
        body = _body(
            from_step=from_step,
            inputs=await _inputs(connection, found, inputs),
            arguments=await _arguments(connection, found, given),
            title=how["title"],
            note=how["note"],
        )
        path = path_of("tasks", found["id"], "fork")
        if how["dry_run"]:
            return _show_again(opening.session, await ask(connection, "POST", path, {**body, "dry_run": True}))
        return await _follow(opening, connection, await ask(connection, "POST", path, body), how)

    return perform_steps(act)


@click.command(
    cls=Verb, epilog="everstep patch t_7k2m9qx4 shorter.json --dry-run\neverstep patch @last - < shorter.json"
)
@click.argument("task")
@click.argument("file")
@_DRY
@_NOTE
def patch(task: str, file: str, note: str | None, *, dry_run: bool) -> int:
    """Change the steps of a task that have not begun: all of FILE or nothing. FILE: {"ops": […]}, or the list alone."""

    async def act(connection: Connection, session: Session) -> int:
        body = _patch_of(file)
        found = await find_task(connection, task)
        body.setdefault("base_revision", found["plan"]["revision"])
        if note is not None:
            body["note"] = note
        path = path_of("tasks", found["id"], "plan")
        try:
            done = await ask(connection, "PATCH", path, {**body, "dry_run": dry_run})
        except EverstepError as error:
            problems: Any = error.details.get("problems")
            if problems:
                cure = "correct the patch; nothing was changed"
                raise PlanRefused(f"'{file}' does not fit the plan", [*problems], cure=cure) from None
            raise
        if session.json:
            session.result_json(done)
            return 0
        for change in done["diff"]:
            where = f" after {change['after']}" if change.get("after") else ""
            tool = f"  {(change.get('step') or {}).get('tool') or ''}".rstrip()
            session.result(f" {change['op']:<8}{safe(change['id'])}{where}{tool}")
        verb = "would be" if dry_run else "is"
        session.say(f"the plan of {short(found['id'])} {verb} at revision {done['revision']}")
        return 0

    return perform(Need.RECORD, act)


@click.command(cls=Verb, epilog="everstep undo @last --dry-run\neverstep undo t_7k2m9qx4 --step write --step upload")
@click.argument("task")
@click.option("--step", "steps", metavar="STEP", multiple=True, help="Only this step [all that completed].")
@_how
def undo(task: str, steps: tuple[str, ...], **how: Any) -> int:  # noqa: ANN401 -- click's own
    """Take back what a task did, the last step first, as a new task. Nothing is taken back twice."""

    async def act(opening: Opening) -> int:
        connection = await opening.connect(Need.RECORD if how["detach"] or how["dry_run"] else Need.CARRY)
        found = await find_task(connection, task)
        path = path_of("tasks", found["id"], "undo")
        body = _body(steps=[*steps] or None, note=how["note"])
        means = await ask(connection, "POST", path, {**body, "dry_run": True})
        if how["dry_run"] and opening.session.json:
            opening.session.result_json(means)
            return 0
        if how["dry_run"] or not opening.session.json:
            _show_undo(opening.session, means, results=how["dry_run"])
        if how["dry_run"]:
            return 0
        return await _follow(opening, connection, await ask(connection, "POST", path, body), how)

    return perform_steps(act)


async def _follow(opening: Opening, connection: Connection, after: Json, how: Json) -> int:
    """Carry it if nobody else does; else say how to follow it."""
    if (how["wait"] or connection.own) and not how["detach"]:
        return await carry_on(opening, connection, after, Pursuit(waits=how["wait"]))
    return tell(opening.session, after, f"follow it: everstep watch {short(after['id'])}")


def _body(**fields: Any) -> Json:  # noqa: ANN401 -- any JSON
    return {name: value for name, value in fields.items() if value}


def _show_again(session: Session, means: Json) -> int:
    if session.json:
        session.result_json(means)
        return 0
    for word in ("kept", "again"):
        session.result(f" {word:<8}{listed(means[word], 20) if means[word] else '-'}")
    for one in means["repeats"]:
        session.result(f" repeats {one['step']}  {one['tool']}, {one['effect']}")
    return 0


def _confirm(session: Session, means: Json, command: str) -> None:
    """Effects would be made a second time: somebody must want that."""
    names = ", ".join(f"{one['step']} ({one['tool']})" for one in means["repeats"])
    if session.yes:
        return
    if not session.asks:
        raise EverstepError(
            f"this would make effects again: {names}", code="bad_request", what_to_do=f"confirm it: {command} --yes"
        )
    _show_again(session, means)
    if not click.confirm(f"Make these effects a second time: {names}?", err=True):
        raise Conflict(f"not confirmed: {names}", code="effects_would_repeat", what_to_do="begin at a later step")


def _show_undo(session: Session, means: Json, *, results: bool) -> None:
    say = session.result if results else session.say
    say(f" undo    {listed(means['undo'], 20) if means['undo'] else '-'}")
    for one in means["not_undoable"]:
        say(f" stays   {one['step']}  {safe(one['why'])}")
    if means.get("point_of_no_return"):
        say(f" what came before {means['point_of_no_return']} cannot be as it was: that step stays")


async def _arguments(connection: Connection, task: Json, given: Sequence[str]) -> Json:
    """`STEP.ARG=V`, in the types that the step's tool declares."""
    tools = {step["id"]: step["tool"] for step in task.get("steps") or ()}
    found: Json = {}
    for one in given:
        name, text, is_json = split_input(one)
        step, dot, argument = name.partition(".")
        if not dot or not argument:
            raise EverstepError(
                f"'{one}' names no argument", code="bad_request", what_to_do="write --set STEP.ARG=VALUE"
            )
        schema: Json = {}
        if tools.get(step) and not is_json:
            tool = await ask(connection, "GET", path_of("tools", tools[step]))
            schema = ((tool.get("input_schema") or {}).get("properties") or {}).get(argument) or {}
        found.setdefault(step, {})[argument] = json_of(text, one) if is_json else typed(text, schema)
    return found


async def _inputs(connection: Connection, task: Json, given: Sequence[str]) -> Json:
    """`K=V`, in the types that the plan declares."""
    if not given:
        return {}
    plan = (await ask(connection, "GET", path_of("tasks", task["id"], "plan")))["plan"]
    found: Json = {}
    for one in given:
        name, text, is_json = split_input(one)
        found[name] = json_of(text, one) if is_json else typed(text, (plan.get("inputs") or {}).get(name) or {})
    return found


def _patch_of(file: str) -> Json:
    read = json_of_file(file)
    if isinstance(read, list):
        return {"ops": read}
    if not isinstance(read, dict):
        raise EverstepError(f"'{file}' holds no patch", code="bad_request", what_to_do='write {"ops": […]}')
    return read
