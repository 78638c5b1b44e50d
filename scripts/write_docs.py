"""Writes the pages that are generated from code; `--check` only says which are stale."""

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar

from everstep.domain.failure import TREATMENT
from everstep.domain.pauses import ANSWERS
from everstep.domain.states import ATTEMPT_MOVES, STEP_MOVES, TASK_MOVES

ROOT: Final = Path(__file__).resolve().parent.parent
NOTE: Final = "<!-- Generated from the code by `make docs`; do not edit. -->"


S = TypeVar("S", bound=StrEnum)


def diagram(moves: Mapping[S, frozenset[S]]) -> str:
    """A state diagram of one table of legal moves; the first row is where it starts."""
    start = next(iter(moves))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {start}"]
    for before, after in moves.items():
        lines += [f"    {before} --> {to}" for to in sorted(after)]
        if not after:
            lines.append(f"    {before} --> [*]")
    return "\n".join([*lines, "```"])


def states_page() -> str:
    """Where tasks, steps and attempts may stand, and how they move."""
    parts = [
        "# States",
        NOTE,
        "After this page you can read any status Everstep shows and know what may come next. Every arrow is one",
        "guarded write; a move that is not drawn here is refused with a conflict that names the current state.",
        "",
        "## Task",
        diagram(TASK_MOVES),
        "",
        "## Step",
        diagram(STEP_MOVES),
        "",
        "## Attempt",
        diagram(ATTEMPT_MOVES),
    ]
    return "\n".join(parts) + "\n"


def failures_page() -> str:
    """How each category of failure is treated, and what each pause may be answered with."""
    rows = [
        f"| `{category}` | {rule.retries} | {'yes' if rule.counts_for_breaker else 'no'} | {rule.then} |"
        for category, rule in TREATMENT.items()
    ]
    answers = [f"| `{kind}` | {', '.join(f'`{word}`' for word in words)} |" for kind, words in ANSWERS.items()]
    parts = [
        "# Failures and pauses",
        NOTE,
        "After this page you know what happens to a failing step, and what you may answer when a task asks.",
        "",
        "| category | retries | counts for the breaker | then |",
        "|---|---|---|---|",
        *rows,
        "",
        "| pause | answers |",
        "|---|---|",
        *answers,
    ]
    return "\n".join(parts) + "\n"


PAGES: Final = {"docs/concepts/states.md": states_page, "docs/concepts/failures.md": failures_page}


def main(*, check: bool) -> int:
    """Write every page, or name the stale ones."""
    stale = []
    for name, page in PAGES.items():
        path = ROOT / name
        text = page()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{'stale, run make docs' if check else 'written'}: {name}")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
