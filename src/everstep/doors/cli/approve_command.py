"""`everstep approve`, `reject`: allow exactly the call that is shown, or refuse it."""

import json
from typing import Any, Final, TypeAlias

import click

from everstep.domain.errors import EverstepError
from everstep.doors.cli.connect import Need, Opening, perform_steps
from everstep.doors.cli.dialogue import Dialogue
from everstep.doors.cli.find import find_pause
from everstep.doors.cli.inbox_command import answer_body, arguments_of, follow_up, must_be_open
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import safe
from everstep.doors.errors import error_object, refusal_of

Json: TypeAlias = dict[str, Any]

APPROVAL: Final = "approvalRequired"


@click.command(
    cls=Verb,
    epilog="""
    everstep approve p_3c8h
    everstep approve p_3c8h p_9d2k --note checked
    everstep approve p_3c8h --set subject="A better subject"
    """,
)
@click.argument("pauses", metavar="PAUSE...", nargs=-1, required=True)
@click.option("--edit", is_flag=True, help="Change the arguments in $EDITOR first.")
@click.option("--set", "settings", metavar="K=V", multiple=True, help="Change an argument; K:=JSON for other types.")
@click.option("--note", metavar="T", help="Why; kept in the journal.")
@click.option("--wait", is_flag=True, help="Follow the task afterwards.")
@click.option("--detach", is_flag=True, help="Only record it; whoever opens the store next carries it.")
def approve(pauses: tuple[str, ...], *, wait: bool, detach: bool, **said: Any) -> int:  # noqa: ANN401 -- click's values
    """Allow the call that each PAUSE shows: these arguments, once. Each has a result of its own."""
    if len(pauses) > 1 and (said["edit"] or said["settings"]):
        raise EverstepError("an edit is for one PAUSE", code="bad_request", what_to_do="approve them one by one")

    async def act(opening: Opening) -> int:
        connection = await opening.connect(Need.RECORD if detach else Need.CARRY)
        if len(pauses) == 1:
            answered = await _approve(connection, opening.session, pauses[0], said)
            if answered is None:
                return 0
            return await follow_up(opening, connection, answered, wait=wait, detach=detach)
        return await _approve_all(opening, connection, pauses, said)

    return perform_steps(act)


async def _approve_all(opening: Opening, connection: Connection, pauses: tuple[str, ...], said: Json) -> int:
    """One after the other; what is refused does not keep the others waiting. Exits with the first refusal's code."""
    session, items, codes = opening.session, [], []
    for name in pauses:
        try:
            answered = await _approve(connection, session, name, said)
        except EverstepError as error:
            codes.append(refusal_of(error).exit)
            items.append({"id": name, "error": error_object(error)})
            session.say(f"{name}  {error.message}", "yellow")
            continue
        if answered is not None:
            items.append(answered)
            if not session.json:
                session.result(f"{answered['id']}  answered: {answered['answered']['answer']}")
    if session.json:
        session.result_json({"items": items})
    elif connection.own:
        session.say("  nobody carries them yet: everstep resume TASK")
    return codes[0] if codes else 0


async def _approve(connection: Connection, session: Session, name: str, said: Json) -> Json | None:
    """Show the call, ask if somebody is here, and allow exactly what was shown; None if it is left waiting."""
    found = await find_pause(connection, name)
    must_be_open(found)
    _must_ask_approval(found)
    arguments = _changes(found, said)
    word = "edit" if arguments else "approve"
    body = {**answer_body(found, word, {"note": said["note"], "settings": (), "value": None})}
    if arguments:
        body["arguments"] = arguments
    if session.asks and not session.yes:
        for line in shown_lines(found, arguments):
            session.warn(line)
        if not click.confirm(f"  {word} it?", default=False, err=True):
            return None
    return await ask(connection, "POST", path_of("inbox", found["id"], "answer"), body)


def shown_lines(pause: Json, arguments: Json) -> list[str]:
    """The call as it would be made."""
    talk = Dialogue(pause)
    lines = [f" || {talk.title}   {talk.aside}", *(f"    {line}" for line in talk.details())]
    return lines + [f"    {name} -> {safe(json.dumps(value, ensure_ascii=False))}" for name, value in arguments.items()]


def _changes(pause: Json, said: Json) -> Json:
    """What is to be called instead, by `--set` or in an editor."""
    if not said["edit"]:
        return arguments_of(said["settings"])
    shown = pause["call"]["input"].get("value")
    editable = {name: shown.get(name) for name in pause["call"]["editable"]} if isinstance(shown, dict) else {}
    text = click.edit(json.dumps(editable, indent=2, ensure_ascii=False), extension=".json")
    try:
        edited = json.loads(text) if text is not None else {}
    except ValueError as error:
        raise EverstepError(
            f"what you wrote is not JSON: {error}", code="answer_invalid", what_to_do="edit again"
        ) from None
    return {name: value for name, value in edited.items() if editable.get(name) != value}


def _must_ask_approval(pause: Json) -> None:
    if pause["reason"]["type"] != APPROVAL:
        raise EverstepError(
            f"{pause['id']} asks for something else: {safe(pause['title'])}",
            code="answer_invalid",
            what_to_do=f"everstep answer {pause['id']}",
        )


@click.command(cls=Verb, epilog='everstep reject p_3c8h --note "wrong address"')
@click.argument("pause")
@click.option("--note", metavar="T", required=True, help="Why not; kept in the journal, and handed on.")
@click.option("--wait", is_flag=True, help="Follow the task afterwards.")
@click.option("--detach", is_flag=True, help="Only record it; whoever opens the store next carries it.")
def reject(pause: str, note: str, *, wait: bool, detach: bool) -> int:
    """Refuse the call that a PAUSE shows; what follows is what the plan says."""

    async def act(opening: Opening) -> int:
        connection = await opening.connect(Need.RECORD if detach else Need.CARRY)
        found = await find_pause(connection, pause)
        must_be_open(found)
        _must_ask_approval(found)
        body = answer_body(found, "reject", {"note": note, "settings": (), "value": None})
        answered = await ask(connection, "POST", path_of("inbox", found["id"], "answer"), body)
        return await follow_up(opening, connection, answered, wait=wait, detach=detach)

    return perform_steps(act)
