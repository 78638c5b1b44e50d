"""`make bench`: measure, print, write `bench/out/latest.json`, exit non-zero below a floor."""

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.kept import OUT, ROOT, keep
from bench.report import Pair, failures, figures, lines

IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})
CELLS = ("seq", "100", "1000")
STARTS = 7


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (at least 3 for a verdict)")
    parser.add_argument("--folder", type=Path, default=OUT, help="where the stores are made; a real disk")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if (kind := file_system(given.folder)) in IN_MEMORY:
        print(f"error: {given.folder} is on {kind}: a flush there costs nothing, and says nothing", file=sys.stderr)
        return 2
    cells: dict[str, list[Pair]] = {cell: [] for cell in CELLS}
    for number in range(given.rounds):
        for cell in CELLS:
            print(f"round {number + 1} of {given.rounds}, cell {cell}", file=sys.stderr)
            reference = measured(given.folder, "bench.bare_writer", cell)
            walk = measured(given.folder, "bench.bare_walk", cell)
            cells[cell].append(Pair(reference, walk, measured(given.folder, "bench.everstep_cells", cell)))
    single = single_figures(given.folder)
    print("\n".join(lines(cells, single)))
    missed = list(failures(cells, single))
    write(cells, single, missed)
    for line in missed:
        print(f"below the floor: {line}", file=sys.stderr)
    return 1 if missed else 0


def measured(folder: Path, module: str, cell: str, *flags: str) -> dict[str, Any]:
    """One cell in a process and a store of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as store:
        said = subprocess.run(
            [sys.executable, "-m", module, cell, store, *flags], cwd=ROOT, stdout=subprocess.PIPE, check=True
        )
    figures: dict[str, Any] = json.loads(said.stdout)
    return figures


def single_figures(folder: Path) -> dict[str, float]:
    """What needs no reference beside it."""
    return {
        "import_ms": started_ms("-c", "import everstep") - started_ms("-c", "pass"),
        "engine_import_ms": started_ms("-c", "from everstep import Engine") - started_ms("-c", "pass"),
        "help_ms": started_ms("-m", "everstep", "--help"),
        "rss_mb": measured(folder, "bench.everstep_cells", "rss")["rss_mb"],
        "flushes_step_seq": measured(folder, "bench.everstep_cells", "seq", "--flushes")["flushes_step"],
        "flushes_step_100": measured(folder, "bench.everstep_cells", "100", "--flushes")["flushes_step"],
    }


def started_ms(*arguments: str) -> float:
    """From starting Python to its end, the median of a few."""
    times = []
    for _ in range(STARTS):
        began = time.perf_counter()
        subprocess.run([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - began) * 1e3)
    return median(times)


def file_system(folder: Path) -> str:
    """What kind of file system a folder is on, as Linux tells it; empty where nobody tells."""
    mounts = Path("/proc/self/mounts")
    if not mounts.exists():
        return ""
    place = folder.resolve()
    entries = [line.split() for line in mounts.read_text(encoding="utf-8").splitlines()]
    under = [(Path(entry[1]), entry[2]) for entry in entries if place.is_relative_to(entry[1])]
    return max(under, key=lambda entry: len(entry[0].parts))[1]


def write(cells: dict[str, list[Pair]], single: dict[str, float], missed: list[str]) -> None:
    raw = {
        "reference_sqlite": sqlite3.sqlite_version,
        "cells": {
            cell: [
                {"reference": pair.reference, "walk": pair.walk, "ours": pair.ours, "ratio": pair.ratio}
                for pair in pairs
            ]
            for cell, pairs in cells.items()
        },
        "single": single,
        "below_the_floor": missed,
    }
    keep("The engine beside a bare writer", "python -m bench", list(figures(cells, single)), raw)


if __name__ == "__main__":
    sys.exit(main())
