"""Chance from the operating system: nothing is kept between draws, so a forked process repeats none."""

import os
import random
from typing import Final

# Crockford's base 32: no i, l, o, u. Every byte stands for its lower five bits.
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_FIVE_BITS: Final = bytes(ord(_ALPHABET[byte & 31]) for byte in range(256))
_THREE_BITS: Final = tuple(_ALPHABET[byte & 7] for byte in range(256))


class SystemEntropy:
    """Ids and draws nobody can foretell."""

    def __init__(self) -> None:
        self.draw = random.SystemRandom().random

    def new_id(self, prefix: str) -> str:
        """`prefix_` and 26 characters: three bits, then 25 times five: 128 random bits."""
        drawn = os.urandom(26)
        return f"{prefix}_{_THREE_BITS[drawn[0]]}{drawn[1:].translate(_FIVE_BITS).decode()}"

    def secret(self) -> bytes:
        """Straight from the system."""
        return os.urandom(32)
