"""Does it slow down as history grows? Workload W with 100 tasks in flight, on an empty store and on a full one.

    python -m bench.growth [STEPS]

The same process, one after the other: some rounds, then tasks until so many steps have ended (100,000; a million takes
some minutes), then as many rounds again. Exit 1 below nine tenths.
"""

import json
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Final

from bench.everstep_cells import opened
from bench.kept import OUT, at_least, keep
from bench.workload import Cell, measure
from everstep.bootstrap import run_process

FULL: Final = 100_000
KEPT_MIN: Final = 0.9
ROUNDS: Final = 5
ROUND: Final = Cell("100", 100, 10)


async def rates(folder: Path, steps: int) -> tuple[list[float], list[float]]:
    """Steps per second of each round, before and after."""
    async with opened(folder) as (carry, meter):

        async def rounds(count: int) -> list[float]:
            return [(await measure(ROUND, carry, meter, int)).steps_s for _ in range(count)]

        empty = await rounds(ROUNDS)
        await rounds(max(0, steps // ROUND.steps - ROUNDS))
        return empty, await rounds(ROUNDS)


def main() -> int:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else FULL
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        empty, full = run_process(rates(Path(folder), steps))
    kept = median(full) / median(empty)
    print(
        json.dumps({"finished_steps": steps, "empty": [*map(round, empty)], "full": [*map(round, full)], "kept": kept})
    )
    figure = at_least(f"with {steps:,} finished steps, of the empty store's rate", round(kept, 3), KEPT_MIN)
    keep(
        f"A store with {steps:,} finished steps",
        f"python -m bench.growth {steps}",
        [figure],
        {"empty": empty, "full": full},
    )
    return int(kept < KEPT_MIN)


if __name__ == "__main__":
    sys.exit(main())
