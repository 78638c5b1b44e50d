"""What the long suites have done: one line of JSON per trial, appended as soon as it is judged.

A suite that was interrupted goes on where it stopped: a trial that stands there for this commit is not repeated. The
report is written from these lines and from nothing else.
"""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

Line: TypeAlias = dict[str, Any]

FILE: Final = Path("torture-results.jsonl")


@dataclass(slots=True)
class Results:
    """What was done, by (fault, seed), and where it is written down."""

    path: Path
    commit: str
    done: dict[tuple[str, int], Line] = field(default_factory=dict)

    @classmethod
    def of_this_commit(cls, path: Path = FILE) -> Self:
        """With what stands there already; a tree with changes is no commit, and repeats all."""
        found = cls(path, commit())
        if not found.commit.endswith(("dirty", "unknown")):
            found.done = {(line["fault"], line["seed"]): line for line in read(path) if line["commit"] == found.commit}
        return found

    def once(self, fault: str, seed: int, play: Callable[[], Line]) -> Line:
        """One trial, unless it was done already. What `play` tells has at least a `verdict`."""
        if (fault, seed) not in self.done:
            began = time.monotonic()
            line = {"fault": fault, "seed": seed, "commit": self.commit, **play()}
            line["seconds"] = round(time.monotonic() - began, 3)
            with self.path.open("a", encoding="utf-8") as results:
                results.write(json.dumps(line) + "\n")
            self.done[fault, seed] = line
        return self.done[fault, seed]


def read(path: Path = FILE) -> Iterator[Line]:
    """All lines; one that was cut off by a kill is passed over."""
    if path.exists():
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(text)
            except ValueError:
                continue


def commit() -> str:
    """Which code this is."""
    git = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)  # noqa: S607
    return git.stdout.strip() or "unknown"


def verdict(*wrong: object) -> str:
    """Passed, unless something of this is there."""
    return "failed" if any(wrong) else "passed"
