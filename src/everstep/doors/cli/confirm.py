"""Asking before something that cannot be taken back by asking again."""

import click

from everstep.domain.errors import Validation
from everstep.doors.cli.session import Session


def confirm(session: Session, question: str, command: str) -> None:
    """Go on, or raise: somebody at the keyboard is asked, a program has to say so."""
    if session.yes:
        return
    if not session.asks:
        raise Validation(f"this needs a confirmation: {question}", what_to_do=f"{command} --yes")
    if not click.confirm(question, err=True):
        raise click.Abort
