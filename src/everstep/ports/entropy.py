"""Entropy: ids and draws. The only source of chance."""

from typing import Protocol


class Entropy(Protocol):
    """Chance, so that it can be seeded."""

    def new_id(self, prefix: str) -> str:
        """`prefix_` and 26 characters of 128 random bits."""

    def secret(self) -> bytes:
        """256 random bits that nobody else knows."""

    def draw(self) -> float:
        """Uniform in [0, 1)."""
