"""Secrets: values by name, for whom they are granted. Only the tool boundary asks for one."""

from typing import Protocol

from everstep.domain.redact import Redactor


class Secrets(Protocol):
    """What the operator has registered."""

    @property
    def redactor(self) -> Redactor:
        """Takes all of them out of texts."""

    def get(self, name: str, owner: str) -> str | None:
        """The value, if there is one and this owner may use it."""


class NoSecrets:
    """Nothing is registered."""

    redactor = Redactor()

    def get(self, name: str, owner: str) -> str | None:  # noqa: ARG002
        """There is none."""
        return None
