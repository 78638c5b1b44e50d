"""`everstep inbox`, `answer`: what waits for someone, and what they say."""

import json
import time
from typing import Any, Final, TypeAlias

import click

from everstep.domain.errors import Conflict, EverstepError
from everstep.domain.suggest import did_you_mean, suggest
from everstep.doors.cli.connect import Need, Opening, perform, perform_steps
from everstep.doors.cli.dialogue import LEAVE, BadValue, Dialogue, answer_commands, cure, value_of
from everstep.doors.cli.find import find_pause
from everstep.doors.cli.given import text_of_file
from everstep.doors.cli.pursue import Pursuit, carry_on, lacking
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, changes, gone, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import ago, instant, listed, safe, short

Json: TypeAlias = dict[str, Any]

TOUCHING: Final = "pause.,task.completed,task.failed,task.cancelled"
"""Events after which something may wait for someone, or wait no more."""


@click.command(cls=Verb, epilog="everstep inbox\neverstep inbox p_3c8h\neverstep inbox --json | jq .items[].id")
@click.argument("pause", required=False)
@click.option("--watch", is_flag=True, help="Stay, and show what comes and goes; Ctrl-C leaves.")
def inbox(pause: str | None, *, watch: bool) -> int:
    """What waits for someone, oldest first; or one PAUSE with everything known about it."""

    async def act(connection: Connection, session: Session) -> int:
        if pause is not None:
            found = await find_pause(connection, pause)
            if session.json:
                session.result_json(found)
            else:
                for line in pause_page(found):
                    session.result(line)
            return 0
        page = await ask(connection, "GET", path_of("inbox"))
        if session.json:
            session.result_json(page)
            return 0
        for one in page["items"]:
            _tell(session, one)
        if not page["items"]:
            session.say("nothing waits for you")
        return 0

    return perform_steps(_watch) if watch else perform(Need.LOOK, act)


def _tell(session: Session, pause: Json) -> None:
    """One pause in two lines."""
    session.result(f" || {pause['id']}  {safe(pause['title'])}")
    where = f"step {pause['step']} of " if pause.get("step") else ""
    waited = ago(time.time() - (instant(pause.get("opened_at")) or time.time()))
    kind, task = pause["reason"]["type"], short(pause["task"])
    session.result(f"      {kind}, {where}{task}, {waited}: everstep inbox {pause['id'][:10]}")


async def _watch(opening: Opening) -> int:
    """What comes and goes, one line or JSON object each, until somebody leaves; whoever carries tasks may change."""
    known: dict[str, Json] = {}
    while True:
        connection = await opening.connect(Need.CARRY, makes=True)
        try:
            async for _ in changes(connection, TOUCHING):
                known = await _look(connection, opening.session, known)
        except EverstepError as error:
            if not gone(error):
                raise


async def _look(connection: Connection, session: Session, known: dict[str, Json]) -> dict[str, Json]:
    """Tell what is new and what is gone."""
    page = await ask(connection, "GET", path_of("inbox"))
    now = {one["id"]: one for one in page["items"]}
    for name, one in now.items():
        if name not in known and session.json:
            session.result_json({"type": "opened", "pause": one})
        elif name not in known:
            _tell(session, one)
    for name in known.keys() - now.keys():
        closed = await ask(connection, "GET", path_of("inbox", name))
        if session.json:
            session.result_json({"type": "closed", "pause": closed})
        else:
            said = closed.get("answered") or {}
            by = f" by {(said.get('actor') or {}).get('id')}: {said.get('answer')}" if said else ""
            session.result(f" ok {name}  {closed['status']}{by}")
    return now


def pause_page(pause: Json) -> list[str]:
    """A pause on one screen."""
    talk = Dialogue(pause)
    lines = [
        f"{talk.title}   {pause['id']}",
        f"{pause['reason']['type']}, {pause['status']}, {talk.aside} of {pause['task']}",
    ]
    lines += ["", *talk.details()]
    if hint := cure(pause):
        lines += ["", hint]
    if pause["status"] == "open":
        lines += ["", "answer it:", *(f"  {command}" for command in answer_commands(pause))]
    elif pause.get("answered"):
        said = pause["answered"]
        lines += ["", f"answered: {said['answer']} by {(said.get('actor') or {}).get('id')}"]
    return lines


@click.command(
    cls=Verb,
    epilog="""
    everstep answer p_3c8h happened --value '{"id": 7}'
    everstep answer p_3c8h not_happened
    everstep answer p_9d2k supply_arguments --set path=notes.txt
    everstep answer p_9d2k answer --value '"blue"'
    """,
)
@click.argument("pause")
@click.argument("answer", required=False)
@click.option("--value", metavar="JSON|@FILE", help="The output or value that goes with the answer.")
@click.option("--set", "settings", metavar="K=V", multiple=True, help="An argument; K:=JSON for other types.")
@click.option("--note", metavar="T", help="Why; kept in the journal.")
@click.option("--wait", is_flag=True, help="Follow the task afterwards.")
@click.option("--detach", is_flag=True, help="Only record it; whoever opens the store next carries it.")
def answer(pause: str, answer: str | None, *, wait: bool, detach: bool, **said: Any) -> int:  # noqa: ANN401 -- click's values
    """Answer a PAUSE. Without ANSWER you are asked, as `run` would."""

    async def act(opening: Opening) -> int:
        session, connection = opening.session, await opening.connect(Need.RECORD if detach else Need.CARRY)
        found = await find_pause(connection, pause)
        must_be_open(found)
        body = answer_body(found, answer, said) if answer or said["value"] is not None else asked_body(found, session)
        if body is None:
            return 0
        after = await ask(connection, "POST", path_of("inbox", found["id"], "answer"), body)
        return await follow_up(opening, connection, after, wait=wait, detach=detach)

    return perform_steps(act)


async def follow_up(opening: Opening, connection: Connection, pause: Json, *, wait: bool, detach: bool) -> int:
    """After an answer: say so, or go on with the task if nobody else does."""
    session, missing = opening.session, []
    if (wait or connection.own) and not detach:
        connection, task = await _found_again(opening, connection, pause["task"])
        if task["status"] != "paused":
            missing = await lacking(connection, task) if connection.own else []
            if not missing:
                return await carry_on(opening, connection, task, Pursuit(waits=wait, taken_up=True))
    if session.json:
        session.result_json(pause)
    else:
        session.result(f"{pause['id']}  answered: {pause['answered']['answer']}")
        told = (
            f"it goes on where {listed(missing)} is" if missing else f"follow it: everstep watch {short(pause['task'])}"
        )
        session.say(f"  {told}")
    return 0


async def _found_again(opening: Opening, connection: Connection, task: str) -> tuple[Connection, Json]:
    """The task as it stands; who carried it in the foreground leaves when it has ended, perhaps by this answer."""
    try:
        return connection, await ask(connection, "GET", path_of("tasks", task))
    except EverstepError as error:
        if not gone(error):
            raise
    connection = await opening.connect(Need.CARRY)
    return connection, await ask(connection, "GET", path_of("tasks", task))


def must_be_open(pause: Json) -> None:
    """One answer wins; who comes later learns whose it was."""
    if pause["status"] == "open":
        return
    said = pause.get("answered") or {}
    actor: Json = said.get("actor") or {}
    who = f"{actor.get('id')} has answered already through {actor.get('via')}: {said.get('answer')}" if said else ""
    raise Conflict(
        who or f"{pause['id']} is {pause['status']}",
        code="already_answered",
        what_to_do=f"everstep show {short(pause['task'])}",
    )


def answer_body(pause: Json, word: str | None, said: Json) -> Json:
    """The request that gives this answer; raises what a person can correct."""
    offered = {one["answer"]: one for one in pause["answers"]}
    word = word or ("answer" if "answer" in offered else None)
    if word not in offered:
        raise EverstepError(
            did_you_mean(f"'{word}' is no answer to {pause['reason']['type']}", suggest(str(word), offered)),
            code="answer_invalid",
            what_to_do=f"one of: {', '.join(offered)}",
        )
    needs = [*((offered[word].get("schema") or {}).get("properties") or {})]
    body: Json = dict(offered[word]["request"]["body"])
    if said["note"] is not None:
        body["note"] = said["note"]
    if needs == ["note"]:
        needs = []
    if "arguments" in needs:
        body["arguments"] = arguments_of(said["settings"])
    elif needs:
        body[needs[0]] = given_value(said["value"], pause, needs[0])
    return body


def arguments_of(given: tuple[str, ...]) -> Json:
    """`--set K=V`: text that reads as JSON is JSON; `K:=JSON` must be."""
    arguments: Json = {}
    for one in given:
        name, equals, text = one.partition("=")
        if not equals or not name.strip(" :"):
            raise EverstepError(f"'{one}' is no argument", code="bad_request", what_to_do="write --set NAME=VALUE")
        try:
            arguments[name.rstrip(":").strip()] = json.loads(text) if name.endswith(":") else value_of(text)
        except (ValueError, BadValue) as error:
            raise EverstepError(f"'{one}': {error}", code="bad_request", what_to_do="quote it for the shell") from None
    return arguments


def given_value(said: str | None, pause: Json, field: str) -> Any:  # noqa: ANN401 -- any JSON
    """`--value JSON` or `--value @FILE`; for a question about a text, the text itself."""
    if said is None:
        return None
    text = text_of_file(said[1:]) if said.startswith("@") else said
    schema = pause["reason"].get("schema")
    if field == "value" and isinstance(schema, dict) and schema.get("type") == "string" and not text.startswith('"'):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise EverstepError(
            f"--value is not JSON: {error}",
            code="answer_invalid",
            what_to_do="""quote it for the shell: --value '{"id": 7}'""",
        ) from None


def asked_body(pause: Json, session: Session) -> Json | None:
    """What somebody types; None if they leave it waiting."""
    if not session.asks:
        raise EverstepError(
            "no answer given, and nobody is here to ask",
            code="bad_request",
            what_to_do=" | ".join(answer_commands(pause)),
        )
    talk = Dialogue(pause)
    session.warn(f"{talk.title}   {talk.aside}")
    if hint := cure(pause):
        session.warn(f"  {hint}", "dim")
    while True:
        if talk.message:
            session.warn(f"  {talk.message}", "yellow")
        try:
            body = talk.hear(
                click.prompt(f"  {talk.prompt}", prompt_suffix=" ", default="", show_default=False, err=True)
            )
        except click.Abort:
            return None
        if talk.viewing:
            for line in talk.details():
                session.warn(f"  {line}")
        if body == LEAVE:
            return None
        if isinstance(body, dict):
            return body
