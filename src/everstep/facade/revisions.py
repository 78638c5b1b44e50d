"""A plan as it was: the first event holds it whole, every revision says what it changed."""

from everstep.domain.changes import changed
from everstep.domain.errors import NotFound
from everstep.domain.events import PlanRevised, TaskCreated
from everstep.domain.ids import Digest, Seq
from everstep.domain.plan import PlanSpec
from everstep.domain.record import record
from everstep.domain.task import TaskState
from everstep.engine.kit import Kit
from everstep.ports.store import Journaled
from everstep.wire.event import decode, loads
from everstep.wire.values import canonical

EVENTS_PAGE = 500


@record
class PlanAt:
    """A plan, and its name."""

    plan: PlanSpec
    digest: Digest


async def plan_at(state: TaskState, revision: int, kit: Kit) -> PlanAt:
    """The plan of a task at one of its revisions; raises NotFound."""
    if not 1 <= revision <= state.revision:
        raise NotFound(f"the plan has no revision {revision}", what_to_do=f"there are 1 to {state.revision}")
    if revision == state.revision:
        return PlanAt(plan=state.plan, digest=state.plan_digest)
    (first,) = await kit.store.read_events(state.id, Seq(0), 1)
    created = await _created(first, kit)
    plan, digest, last = created.plan, created.plan_digest, first.seq
    while True:
        for event in await kit.store.read_events(state.id, last, EVENTS_PAGE):
            last = event.seq
            body = decode(event.encoded).body if event.type == PlanRevised.TYPE else None
            if isinstance(body, PlanRevised):
                if body.revision > revision:
                    return PlanAt(plan=plan, digest=digest)
                plan, digest = changed(plan, body.diff), body.digest


async def _created(first: Journaled, kit: Kit) -> TaskCreated:
    """The first event, with its plan from the artifact where it is too long to stand in it."""
    kept = loads(first.encoded)["data"]["plan"].get("artifact")
    raw = b"" if kept is None else canonical((await kit.store.get_payloads((Digest(kept),)))[0])
    body = decode(first.encoded, lambda _: raw).body
    assert isinstance(body, TaskCreated)
    return body
