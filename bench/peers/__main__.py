"""`make bench-peers`: install, measure in interleaved rounds, print, keep what was found."""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import peers
from bench.__main__ import IN_MEMORY, file_system
from bench.fleet import server
from bench.kept import OUT, Figure, keep
from bench.peers.environments import PACKAGES, prepare, versions
from bench.peers.rows import ROWS, Row, measured
from bench.report import Spread

CELLS = {"seq": "one task at a time", "100": "100 in flight"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (at least 3 for a verdict)")
    parser.add_argument("--folder", type=Path, default=OUT, help="where the stores are made; a real disk")
    parser.add_argument("--only", nargs="*", help="some rows only, by name; ours are always there")
    parser.add_argument("--cells", nargs="*", default=[*CELLS], choices=[*CELLS])
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for place in (given.folder, Path(tempfile.gettempdir())):
        if (kind := file_system(place)) in IN_MEMORY:
            print(f"error: {place} is on {kind}: a flush there costs nothing, and says nothing", file=sys.stderr)
            return 2
    rows = [row for row in ROWS if row.peer is None or not given.only or row.name in given.only]
    found: dict[tuple[Row, str], list[dict[str, Any]]] = {}
    not_run: dict[str, str] = {}
    with server([]) as url:
        for number in range(given.rounds):
            for cell in given.cells:
                for row in rows:
                    measure(row, cell, given.folder, url, found, not_run)
            print(f"round {number + 1} of {given.rounds} is done", file=sys.stderr)
    print("\n".join(table(found)))
    for name, why in not_run.items():
        print(f"not run: {name}: {why}", file=sys.stderr)
    missed = list(below(found))
    write(found, not_run, missed)
    for line in missed:
        print(f"below the floor: {line}", file=sys.stderr)
    return 1 if missed or not_run else 0


def measure(
    row: Row,
    cell: str,
    folder: Path,
    url: str,
    found: dict[tuple[Row, str], list[dict[str, Any]]],
    not_run: dict[str, str],
) -> None:
    """One more figure, or why there is none: never a guess."""
    try:
        with tempfile.TemporaryDirectory(dir=folder) as store:
            figures = measured(row, cell, Path(store), url)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        not_run[f"{row.name} on {row.store}, cell {cell}"] = str(error)[-500:]
        return
    found.setdefault((row, cell), []).append(figures)
    cut = " (cut)" if figures.get("cut") else ""
    print(f"{row.name:<10} {row.store:<13} {cell:>4} {figures['steps_s']:>10.1f} steps/s{cut}", file=sys.stderr)


def rates(found: dict[tuple[Row, str], list[dict[str, Any]]], row: Row, cell: str) -> list[float]:
    return [one["steps_s"] for one in found.get((row, cell), ())]


def ours(row: Row) -> Row:
    """What a row is compared with: Everstep on a file, or on the same database."""
    store = "postgresql" if row.store == "postgresql" else "sqlite"
    return next(one for one in ROWS if (one.name, one.store) == ("everstep", store))


def ratio(found: dict[tuple[Row, str], list[dict[str, Any]]], row: Row, cell: str) -> Spread | None:
    """How many times as fast we are, round by round."""
    pairs = list(zip(rates(found, ours(row), cell), rates(found, row, cell), strict=False))
    return Spread.of(mine / theirs for mine, theirs in pairs) if pairs else None


def table(found: dict[tuple[Row, str], list[dict[str, Any]]]) -> Iterator[str]:
    """For people."""
    yield f"{'who':<11}{'store':<14}{'cell':<6}{'steps/s':>26}{'CPU ms/step':>24}{'we are so many times':>26}  floor"
    for (row, cell), figures in found.items():
        spread, times = Spread.of(rates(found, row, cell)), ratio(found, row, cell)
        cpu = Spread.of(one["cpu_ms_step"] for one in figures)
        floor = (row.floors or {}).get(cell)
        cut = "  cut" if any(one.get("cut") for one in figures) else ""
        said = "" if times is None or row.name == "everstep" else times.show(2)
        yield (
            f"{row.name:<11}{row.store:<14}{cell:<6}{spread.show(1):>26}{cpu.show(3):>24}{said:>26}"
            f"  {'' if floor is None else f'{floor:g}'}{cut}"
        )


def below(found: dict[tuple[Row, str], list[dict[str, Any]]]) -> Iterator[str]:
    """Where we are not as many times as fast as we say."""
    for row, cell in found:
        times, floor = ratio(found, row, cell), (row.floors or {}).get(cell)
        if times is not None and floor is not None and times.median < floor:
            yield f"{row.name} on {row.store}, cell {cell}: {times.median:.2f} times, the floor is {floor:g}"


def figures(found: dict[tuple[Row, str], list[dict[str, Any]]]) -> Iterator[Figure]:
    """Rates, and where something is promised, how many times theirs ours is."""
    for row, cell in found:
        rate = Spread.of(rates(found, row, cell)).show(1)
        times, floor = ratio(found, row, cell), (row.floors or {}).get(cell)
        what = f"{row.name} on {row.store}, {CELLS[cell]}"
        yield Figure(what, f"{rate} steps/s")
        if times is not None and floor is not None:
            yield Figure("- Everstep beside it", f"{times.show(2)} x", f"≥ {floor:g} x", times.median >= floor)


def write(found: dict[tuple[Row, str], list[dict[str, Any]]], not_run: dict[str, str], missed: list[str]) -> None:
    """Everything, for whoever wants to look closer."""
    measured_peers = {row.peer for row, _ in found if row.peer is not None}
    raw = {
        "versions": {peer: versions(peer, prepare(peer)) for peer in PACKAGES if peer in measured_peers},
        "settings": peers.__doc__,
        "rows": [
            {"name": row.name, "store": row.store, "cell": cell, "rounds": found[row, cell]} for row, cell in found
        ],
        "not_run": not_run,
        "below_the_floor": missed,
    }
    keep("Beside other engines", "python -m bench.peers", list(figures(found)), raw)


if __name__ == "__main__":
    sys.exit(main())
