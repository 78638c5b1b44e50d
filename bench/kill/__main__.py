"""`python -m bench.kill`: every engine through the same kills; a table of effects expected, made and recorded.

    python -m bench.kill                          30 kills each
    python -m bench.kill --kills 100 --only dbos everstep

Lines go to torture-results.jsonl, so that `scripts/write_proof.py` can publish them. Exit 1 if ours lost, doubled or
hid an effect, or if an engine could not be run; `EVERSTEP_WAIVE=restate,temporal` says that this is known of these.
What others do is told, not judged.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.fleet import server
from bench.kill.subjects import ENGINES, Engine, Peer
from bench.peers.environments import prepare, versions
from everstep.torture.results import Line, Results, verdict
from everstep.torture.trial import Plot, Report, random_plot, trial
from everstep.torture.workload import Workload

KILLS_PER_TRIAL = 10
STEPS, CALL_S = 20, 0.05


def carried(engine: Engine, url: str, workload: Workload, plot: Plot) -> Report:
    """One trial in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="kill-") as folder:
        Path(folder).chmod(0o755)
        if engine.peer is None:
            return trial(Path(folder), workload, plot)
        peer = Peer(engine, url)
        try:
            return trial(Path(folder), workload, plot, peer)
        finally:
            peer.close()


def play(engine: Engine, url: str, kills: int, seed: int) -> Line:
    """A clean trial to know how long it takes, then trials with kills until there are enough."""
    try:
        clean = carried(engine, url, Workload(steps=STEPS, seed=seed, call_s=CALL_S), Plot())
        if clean.account is None:
            return {"verdict": "not_run", "why": str(clean.violations)[:500], **about(engine)}
        found: Counter[str] = Counter()
        progress: list[float] = []
        wrong: list[str] = []
        while found["kills"] < kills:
            workload = Workload(steps=STEPS, seed=seed + found["trials"], call_s=CALL_S)
            report = carried(engine, url, workload, random_plot(clean, workload.seed, KILLS_PER_TRIAL))
            found.update(counted(report), trials=1)
            progress += report.progress_s[1:]
            wrong += map(str, report.violations)
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        return {"verdict": "not_run", "why": str(error)[:500], **about(engine)}
    bad = wrong or found["unfinished"] or found["lost"] or found["doubled"] or found["dark"]
    middle = sorted(progress)[len(progress) // 2] if progress else None
    told = {"verdict": verdict(bad and engine.peer is None), "moves_again_s": middle, "engine": engine.name}
    return {**told, **dict(found), "violations": wrong[:3], **about(engine)}


def counted(report: Report) -> dict[str, int]:
    """Of one trial."""
    entries = report.ledger.entries
    return {
        "kills": report.kills,
        "expected": sum(one.expected for one in entries),
        "made": sum(one.made for one in entries),
        "recorded": sum(min(one.recorded, one.expected) for one in entries),
        "once": sum(one.expected for one in entries if not one.effect.repeatable),
        "once_made": sum(one.made for one in entries if not one.effect.repeatable),
        "lost": len(report.ledger.lost),
        "doubled": len(report.ledger.doubled),
        "dark": len(report.ledger.dark),
        "asked": report.ledger.asked,
        "unfinished": int(report.account is None),
    }


def about(engine: Engine) -> dict[str, Any]:
    """Versions, settings, and what they promise."""
    try:
        known = versions(engine.peer, prepare(engine.peer)) if engine.peer is not None else {}
    except (OSError, subprocess.SubprocessError):
        known = {}
    return {"claim": engine.claim, "settings": engine.settings, "versions": known}


def table(lines: list[Line]) -> Iterator[str]:
    """For people."""
    names = ("kills", "expected", "made", "recorded", "once", "once_made", "lost", "doubled", "dark", "asked")
    yield f"{'engine':<24}{''.join(f'{name:>10}' for name in names)}   moves again"
    for line in lines:
        if line["verdict"] == "not_run":
            yield f"{line['fault'].removeprefix('peer '):<24} not run: {line['why'][:300]}"
            continue
        again = "" if line["moves_again_s"] is None else f"{line['moves_again_s']:.2f} s"
        yield f"{line['engine']:<24}{''.join(f'{line.get(name, 0):>10}' for name in names)}   {again}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.kill", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=30, help="of each engine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="some engines, by name")
    given = parser.parse_args()
    results, lines = Results.of_this_commit(), []
    wanted = [engine for engine in ENGINES if not given.only or engine.name in given.only]
    with server([]) as url:
        for engine in wanted:
            work = partial(play, engine, url, given.kills, given.seed)
            lines.append(results.once(f"peer {engine.name}", given.seed, work))
            print("\n".join([*table(lines)][-1:]), flush=True)
    print("\n".join(table(lines)))
    waived = os.environ.get("EVERSTEP_WAIVE", "").split(",")
    missing = [engine.name for engine, line in zip(wanted, lines, strict=True) if line["verdict"] == "not_run"
               and engine.peer not in waived]  # fmt: skip
    if missing:
        print(f"could not be run: {', '.join(missing)}")
    return int(bool(missing) or any(line["verdict"] == "failed" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
