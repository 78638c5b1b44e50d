"""What may not go out, and what goes out only if somebody says so. Pure: patterns, check digits, entropy."""

import re
from collections import Counter
from collections.abc import Iterator
from math import log2
from typing import Final

_NEVER: Final = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("an access key of AWS", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("a token of GitHub", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})")),
    ("a token of Slack", re.compile(r"\bxox[abposr]-[A-Za-z0-9-]{20,}")),
    ("a key of a model provider", re.compile(r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}")),
    ("a signed web token", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}")),
)
_CARD: Final = re.compile(r"(?<![\w.-])(?<!\d[ -])(?:[0-9][ -]?){12,18}[0-9](?![\w.-])")
_IBAN: Final = re.compile(r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_WORD: Final = re.compile(r"(?<![\w/+=.:@-])[A-Za-z0-9+/_=-]{24,200}(?![\w/+=.:@-])")
BITS_PER_CHARACTER: Final = 4.2
"""Words and numbers stay below; 24 random characters of base 64 come out at about 4.4."""


def denied(text: str) -> str | None:
    """What it holds that never goes out."""
    return next((what for what, pattern in _NEVER if pattern.search(text)), None)


def doubtful(text: str) -> list[str]:
    """What it seems to hold that somebody should have a look at."""
    return [*dict.fromkeys(_doubts(text))]


def _doubts(text: str) -> Iterator[str]:
    if any(_is_card(found[0]) for found in _CARD.finditer(text)):
        yield "a card number"
    if any(_is_iban(found[0]) for found in _IBAN.finditer(text)):
        yield "a bank account (IBAN)"
    if any(_is_random(found[0]) for found in _WORD.finditer(text)):
        yield "what looks like a key or a password"


def _is_card(text: str) -> bool:
    """By its check digit."""
    digits = [int(one) for one in text if one.isdigit()]
    doubled = [2 * one - 9 * (one > 4) for one in digits[-2::-2]]
    return len(set(digits)) > 1 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """By its check number."""
    plain = text.replace(" ", "")
    turned = plain[4:] + plain[:4]
    return 15 <= len(plain) <= 34 and int("".join(str(int(one, 36)) for one in turned)) % 97 == 1


def _is_random(word: str) -> bool:
    """Many different characters in no order, digits and letters among them."""
    mixed = any(one.isdigit() for one in word) and any(one.islower() for one in word) and word.lower() != word
    counts = Counter(word).values()
    return mixed and -sum(n / len(word) * log2(n / len(word)) for n in counts) >= BITS_PER_CHARACTER
