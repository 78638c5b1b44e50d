"""`docs/figures.md` from what was kept: `python -m bench.figures` after `make bench`."""

import sys
from collections.abc import Iterator
from typing import Any, Final

from bench.kept import ROOT, read

PAGE: Final = ROOT / "docs" / "figures.md"
HEAD: Final = """# Figures

<!-- Written by `python -m bench.figures` from the results of the last measurements; do not edit. -->
After this page you know how fast Everstep is, beside what, and how to measure it yourself. Rates depend on the disk:
compare ratios, which are measured one right after the other in the same run, with the same durability on both sides.
Every part says when it was measured, on which commit, and under which load.
"""
LOSES: Final = """## Where it loses, and why

- A single step waits for one flush of the disk, like every engine that keeps its word: on a slow disk nothing is fast.
- Beside the bare writer, which appends two lines and knows nothing, the rest is Python: reading the plan, resolving and
  checking arguments, the guards, the events. At 100 tasks in flight that is what bounds it, not the disk.
- A durable function costs two commits a call, where a step of a plan costs one: its code hears of an outcome only once
  it is durable.
- On PostgreSQL a step costs more CPU than on a file: it crosses a socket, and the server shares the machine here.
"""


def main() -> int:
    parts = read()
    if not parts:
        print("nothing was measured yet: make bench", file=sys.stderr)
        return 1
    PAGE.write_text(
        "\n".join([HEAD, *(line for part in parts.items() for line in _part(*part)), LOSES]), encoding="utf-8"
    )
    print(f"written: {PAGE.relative_to(ROOT)}")
    return 0


def _part(name: str, part: dict[str, Any]) -> Iterator[str]:
    on = part["machine"]
    yield f"## {name}\n"
    yield "| what | figure | target | |\n|---|---|---|---|"
    for figure in part["figures"]:
        met = {True: "met", False: "**missed**", None: ""}[figure["met"]]
        yield f"| {figure['what']} | {figure['value']} | {figure['target']} | {met} |"
    yield (
        f"\n`{part['command']}`, {part['at'][:10]}, commit {part['commit']}, {on['system']} with {on['cores']} cores, "
        f"Python {on['python']}, SQLite {on['sqlite']}, load {on['load']}.\n"
    )


if __name__ == "__main__":
    sys.exit(main())
