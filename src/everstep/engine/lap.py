"""Lap: what one look at a state says. Events are applied as they are said, so a lap sees its own consequences."""

from collections.abc import Mapping

from everstep.domain import events as e
from everstep.domain.breaker import Ask, Toll, Verdict
from everstep.domain.fold import apply
from everstep.domain.ids import Digest, Instant, PauseId, StepPath
from everstep.domain.pauses import Pause, Reason
from everstep.domain.scope import FOREIGN, OUR_ITEMS, StateScope
from everstep.domain.task import Proposal, TaskState
from everstep.domain.values import JsonValue, Sealed
from everstep.engine.kit import Kit
from everstep.engine.passage import Place, RateWish
from everstep.engine.perform import Performance
from everstep.engine.shared import SlotWish

__all__ = ["Lap", "Performance"]


class Lap:
    """Drafts and proposals of one commit; the payloads it would need first, and when to look again."""

    __slots__ = (
        "asks",
        "at",
        "begun",
        "code",
        "drafts",
        "graph",
        "held_back",
        "in_final",
        "kit",
        "needs",
        "places",
        "proposals",
        "proposed",
        "scope",
        "slots",
        "spent",
        "state",
        "verdicts",
        "wishes",
    )

    def __init__(self, state: TaskState, kit: Kit, at: Instant) -> None:
        self.state = state
        self.kit = kit
        self.at = at
        self.graph = kit.graph(state)
        self.scope = StateScope(state, self.graph)
        self.drafts: list[e.Draft] = []
        self.proposals: list[Proposal] = []
        self.asks: list[Ask] = []
        """Leave that some of the proposals need from their breakers."""
        self.verdicts: tuple[Verdict, ...] = ()
        """What breakers learn from the ends this lap began with."""
        self.proposed: set[StepPath] = set()
        self.needs: set[Digest] = set()
        self.slots: tuple[SlotWish, ...] = ()
        """Slots of a fleet's pools that must be taken first."""
        self.places: list[Place] = []
        """Places in rates that this lap uses; one that is not committed leaves them to the next."""
        self.wishes: list[RateWish] = []
        """Places in rates that must be reserved first."""
        budget = state.budget
        self.spent = (budget.alarm or at >= budget.look_at) and budget.spent(at) is not None
        """Whether the task has used up what it was given: then no call begins, but in `finally`."""
        self.held_back = False
        """Whether a call did not begin because of that."""
        self.begun = 0
        """Steps of the plan that begin with a proposal of this lap: they take a place already."""
        self.code: Performance | None = None
        """The durable function at work, if the task is one's."""
        self.in_final = False
        """Whether the plan's `finally` steps are at work: nothing in them pauses."""

    def grow(self) -> None:
        """The plan has more steps than when this lap began."""
        self.graph = self.kit.graph(self.state)
        self.scope = StateScope(self.state, self.graph)

    def ask_slot(self, step: StepPath, pool: str) -> None:
        """It needs a slot of a fleet's pool first."""
        self.slots = (*self.slots, SlotWish(step=step, pool=pool))

    def say(self, body: e.Body, step: StepPath | None = None) -> None:
        """One more event of this commit."""
        self.drafts.append(e.Draft(body, step))
        apply(self.state, body, step, self.at)

    def propose(self, proposal: Proposal, *, begins: bool) -> None:
        """One more call that could start; `begins` if it is the first of a step of the plan."""
        self.proposals.append(proposal)
        self.proposed.add(proposal.step)
        self.begun += begins

    def ask_no_more(self, path: StepPath) -> None:
        """The call is held back after all: its breaker need not give leave."""
        if self.asks:
            self.asks = [ask for ask in self.asks if ask.caller.step != path]

    def pause(self, path: StepPath | None, reason: Reason, *, title: str, why: str) -> None:
        """Open a question."""
        guidance = self.state.plan.guidance
        if path is not None:
            guidance = self.graph.by_id[path.partition("[")[0]].spec.guidance or guidance
        pause = Pause(
            id=PauseId(self.kit.entropy.new_id("p")), step=path, reason=reason, title=title, why=why, guidance=guidance
        )
        draft = self.kit.timed(e.Draft(body=e.PauseOpened(pause=pause), step=path), self.state, self.at)
        self.say(draft.body, path)

    @property
    def toll(self) -> Toll | None:
        """What this commit tells and asks the breakers; nearly always nothing."""
        return Toll(verdicts=self.verdicts, asks=tuple(self.asks)) if self.verdicts or self.asks else None

    def scope_with(self, extra: Mapping[str, JsonValue], items: Sealed) -> StateScope:
        """The task's values, and those of the item at hand."""
        return StateScope(self.state, self.graph, extra, foreign=FOREIGN if items.untrusted else OUR_ITEMS)
