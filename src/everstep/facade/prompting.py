"""What `run` says of a task that waits for somebody: a question on a terminal, elsewhere where to answer it."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from everstep.domain.errors import EverstepError
from everstep.domain.values import JsonValue

_TAKES_VALUE: Final = frozenset(
    {"happened", "supply_output", "answer", "supply_arguments", "retry_with", "edit", "raise_limit"}
)


class Question(Protocol):
    """What is seen of an open pause; each of its answers is a method of that name."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def answers(self) -> Sequence[str]: ...
    @property
    def show(self) -> Sequence[JsonValue]: ...


def ask(questions: Iterable[Question]) -> bool:
    """Prompt for each; False if one is left waiting."""
    for question in questions:
        shown = "".join(f"  shown: {_plain(json.dumps(one, ensure_ascii=False))}\n" for one in question.show)
        answers = ", ".join(question.answers)
        sys.stderr.write(f"\n{_plain(question.title)}\n  {_plain(question.why)}\n{shown}  {answers} (value as JSON)\n")
        while True:
            sys.stderr.write("answer, or nothing to leave it waiting > ")
            sys.stderr.flush()
            word, _, value = sys.stdin.readline().strip().partition(" ")
            if not word:
                return False
            try:
                _answer(question, word, value)
                break
            except (ValueError, EverstepError) as error:  # no such answer, no JSON, or refused
                sys.stderr.write(f"  {error}\n")
    return True


def tell(questions: Iterable[Question]) -> None:
    """A program that ends with nothing said would look as if nothing had been asked."""
    for question in questions:
        sys.stderr.write(
            f"waits for you: {_plain(question.title)} Nothing is lost. Answer, then run this again: "
            f"everstep inbox {question.id}\n"
        )


def _answer(question: Question, word: str, value: str) -> None:
    if word not in question.answers:
        raise ValueError(f"'{word}' is no answer here")
    given = [json.loads(value) if value else None] if word in _TAKES_VALUE else [value] if word == "reject" else []
    getattr(question, word)(*given)


def _plain(text: str) -> str:
    """On one line, and with nothing a terminal would obey."""
    return "".join(one if one.isprintable() else " " for one in text)
