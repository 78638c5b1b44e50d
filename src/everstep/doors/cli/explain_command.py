"""`everstep explain CODE`: what a code means, what follows from it, and what to do."""

from typing import Any, Final, TypeAlias

import click

from everstep.domain.catalogue import ERROR_CODES
from everstep.domain.errors import NotFound
from everstep.domain.failure import TREATMENT
from everstep.domain.suggest import did_you_mean, suggest
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.verbs import Verb
from everstep.doors.errors import REFUSALS, REMEDIES

Json: TypeAlias = dict[str, Any]

_EFFECTS: Final = {
    "none": "the call certainly did not act, so it may be tried again",
    "unknown": "nobody knows whether the call acted: the effect rule decides (call again, look, or ask)",
    "made": "the call ran to its end, so it is never repeated by itself",
}
_EXITS: Final = {
    1: "the task or command failed",
    2: "usage",
    3: "plan, input, answer or setting invalid",
    4: "not allowed",
    5: "not found",
    6: "store unreachable, locked or not ready",
    9: "conflict with the current state",
    70: "a bug in everstep",
}


@click.command(cls=Verb, epilog="everstep explain http_503\neverstep explain store_locked")
@click.argument("code")
def explain(code: str) -> None:
    """Explain a CODE, as it stands in [brackets] behind an error."""
    word = code.strip("[]").lower()
    told = of_step(word) or of_caller(word)
    if told is None:
        known = [*ERROR_CODES, *REFUSALS]
        raise NotFound(
            did_you_mean(f"no code '{code}'", suggest(word, known)),
            what_to_do="codes of plans begin with plan.: everstep plan check FILE explains them in place",
        )
    _show(session(), told)


def of_step(word: str) -> Json | None:
    """A code of a step's failure."""
    row = ERROR_CODES.get(word)
    if row is None:
        return None
    treatment = TREATMENT[row.category]
    return {
        "code": word,
        "of": "step",
        "meaning": row.title,
        "category": row.category.value,
        "retries": treatment.retries,
        "retried": treatment.only_if or None,
        "effect_state": row.effect_state.value,
        "what_to_do": row.what_to_do,
    }


def of_caller(word: str) -> Json | None:
    """A code of a refused command or request."""
    row = REFUSALS.get(word)
    if row is None:
        return None
    return {
        "code": word,
        "of": "command",
        "meaning": row.title,
        "category": row.category.value,
        "exit_code": row.exit,
        "what_to_do": REMEDIES[word],
    }


def _show(session: Session, told: Json) -> None:
    if session.json:
        session.result_json(told)
        return
    session.result(f"{told['code']}: {told['meaning']}")
    if told["of"] == "step":
        earned = f"{told['retries']} {'retry' if told['retries'] == 1 else 'retries'}"
        only_if = f", {told['retried']}" if told["retried"] else ""
        session.result(f"  category  {told['category']}: {earned} unless the plan says otherwise{only_if}")
        session.result(f"  effect    {told['effect_state']}: {_EFFECTS[told['effect_state']]}")
    else:
        session.result(f"  exit      {told['exit_code']}: {_EXITS.get(told['exit_code'], '')}")
    session.result(f"  do        {told['what_to_do']}")
