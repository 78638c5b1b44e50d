"""`everstep signal`: tell steps that wait for an event from outside that it has come."""

import click

from everstep.doors.cli.connect import Need, Opening, perform_steps
from everstep.doors.cli.given import json_of, text_of_file
from everstep.doors.cli.talk import ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import plural


@click.command(
    cls=Verb,
    epilog="""
    everstep signal paid --key order-17 --data '{"amount": 12}'
    everstep signal deployed
    """,
)
@click.argument("event")
@click.option("--key", metavar="K", help="Which one of them; a step without a key of its own has its task's id.")
@click.option("--data", metavar="JSON|@FILE", help="What comes with it.")
@click.option("--id", metavar="ID", help="Your own id: the same id again does nothing twice.")
def signal(event: str, *, key: str | None, data: str | None, id: str | None) -> int:
    """Tell every step that waits for EVENT, or else the first that will."""
    text = text_of_file(data[1:]) if data is not None and data.startswith("@") else data
    value = None if text is None else json_of(text, "--data", what_to_do="""as in: --data '{"amount": 12}'""")

    async def act(opening: Opening) -> int:
        session, connection = opening.session, await opening.connect(Need.RECORD, makes=True)
        body = {
            name: one for name, one in (("event", event), ("key", key), ("data", value), ("id", id)) if one is not None
        }
        sent = await ask(connection, "POST", path_of("signals"), body)
        if session.json:
            session.result_json(sent)
        elif sent["delivered"]:
            session.result(f"{sent['id']}   heard by {plural(sent['delivered'], 'step')}")
        else:
            session.result(f"{sent['id']}   kept: the first step that waits for it will have it")
        return 0

    return perform_steps(act)
