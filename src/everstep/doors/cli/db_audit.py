"""`everstep db audit`: who changed what."""

from typing import Any, TypeAlias

import click

from everstep.domain.audit import Change
from everstep.domain.audit import audit as changes_of
from everstep.doors.cli.connect import Need, perform
from everstep.doors.cli.find import find_task
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, journal
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import safe
from everstep.wire.event import decode
from everstep.wire.times import to_text
from everstep.wire.values import canonical

Json: TypeAlias = dict[str, Any]


@click.command(cls=Verb, epilog="everstep db audit @last")
@click.argument("task")
def audit(task: str) -> int:
    """Say who changed what in TASK, when, why, and from which state."""

    async def act(connection: Connection, session: Session) -> int:
        found = await find_task(connection, task)
        events = [decode(canonical(event)) async for event in journal(connection, found["id"])]
        changes = changes_of(events, found["owner"])
        if session.json:
            session.result_json({"items": [_change_json(change) for change in changes]})
            return 0
        for change in changes:
            who = f"{change.actor.kind} {change.actor.id[:12]} via {change.actor.via}"
            what = f"{change.step or 'task'}: {change.before or 'nothing'} -> {change.after}"
            session.result(
                safe(f"{change.seq:>5}  {to_text(change.at)}  {who:<32} {what}  {change.why or ''}".rstrip())
            )
        return 0

    return perform(Need.LOOK, act)


def _change_json(change: Change) -> Json:
    return {
        "seq": change.seq,
        "at": to_text(change.at),
        "actor": {"kind": change.actor.kind, "id": change.actor.id, "via": change.actor.via},
        "type": change.type,
        "step": change.step,
        "from": change.before,
        "to": change.after,
        "why": change.why,
    }
