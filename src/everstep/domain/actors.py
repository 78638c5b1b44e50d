"""Who acts, and on whose behalf."""

from enum import StrEnum

from everstep.domain.record import record


class ActorKind(StrEnum):
    """Who acted."""

    HUMAN = "human"
    LLM = "llm"
    SERVICE = "service"
    SYSTEM = "system"


@record
class Actor:
    """Who did it, and through which door."""

    kind: ActorKind
    id: str
    via: str


@record
class Who:
    """On whose behalf, and by whom."""

    owner: str
    actor: Actor
