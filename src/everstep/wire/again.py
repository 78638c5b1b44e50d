"""What going back, changing or taking back would mean, as replies tell it (interfaces, 4.2 and 4.3)."""

from collections.abc import Sequence

from everstep.domain.changes import Change
from everstep.domain.ids import Digest
from everstep.domain.reopen import Again, repeats_json
from everstep.domain.undo import Outlook
from everstep.domain.values import JsonObject
from everstep.wire.change import change_json


def again_json(again: Again) -> JsonObject:
    """`kept`, `again`, `repeats`; a list of which some items stand is in both."""
    return {
        "kept": [*again.kept, *again.partly],
        "again": [*again.superseded],
        "repeats": repeats_json(again.repeats),
    }


def undo_json(found: Outlook) -> JsonObject:
    """`undo`, `not_undoable`, `conflicts`, and the last effect that stays whatever is done."""
    return {
        "undo": [*found.undo],
        "not_undoable": [{"step": one.step, "why": one.why} for one in found.stays],
        "conflicts": [],
        "point_of_no_return": found.point_of_no_return,
    }


def revised_json(revision: int, digest: Digest, diff: Sequence[Change]) -> JsonObject:
    """A revision of a plan."""
    return {"revision": revision, "digest": digest, "diff": [change_json(change) for change in diff]}
