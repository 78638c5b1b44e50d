"""Whose word the steps of a task are: only what somebody wrote whose plans are trusted may name hosts and plans.

And whose word an argument is that was set later: a person's is as good as the plan's; any other is data.
"""

from typing import Final

from everstep.domain.changes import Link
from everstep.domain.ids import StepPath, split_path
from everstep.domain.plan import PlanSpec

NOTHING: Final[frozenset[str]] = frozenset()


class Vouched:
    """What a state can say about that."""

    __slots__ = ()

    trusted: bool
    plan: PlanSpec
    revision: int
    parent: Link | None
    strange: dict[str, frozenset[str] | None]
    """What nobody vouches for: arguments of steps that no person set, or (None) steps that strangers wrote."""

    @property
    def stands_trusted(self) -> bool:
        """Whether its plan is as it was trusted; what patches and forks brought in counts as a stranger's."""
        forked = self.parent is not None and self.parent.link != "child_of"
        written = self.revision == 1 or self.plan.durable is not None
        return self.trusted and written and not forked

    def vouches_for(self, path: StepPath) -> bool:
        """Whether a step stands in a trusted plan as its author wrote it; an undo is made of what others returned."""
        made_up = self.parent is not None and self.parent.link == "undo_of"
        return self.trusted and not made_up and self.strange.get(split_path(path)[0], NOTHING) is not None

    def others_set(self, path: StepPath) -> frozenset[str]:
        """Arguments of a step that no person has set."""
        return self.strange.get(path) or NOTHING

    @property
    def holds_strange_steps(self) -> bool:
        """Whether a stranger wrote some of its plan."""
        return None in self.strange.values()
