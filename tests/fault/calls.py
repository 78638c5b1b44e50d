"""Struck at the k-th system call of the store: killed there, or told that the disk is full or broken.

    python -m tests.fault.calls                   every k of the small trial, into the results
    python -m tests.fault.calls F3 pwrite64 7     one of them

`strace` does it, from outside, so no line of ours knows. Without `strace`, or where it may not trace, the faults are
written down as not run, with the reason; that fails the suite unless `EVERSTEP_WAIVE=strace` says that it is known.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from everstep.torture.results import Line, Results, verdict
from everstep.torture.trial import EverstepSubject, Plot, trial
from everstep.torture.workload import Workload

WORKLOAD = Workload(steps=4, call_s=0.002)
CALLS = ("pwrite64", "fdatasync", "ftruncate", "unlink")
HOW = {"F1c": "signal=SIGKILL", "F3": "error=ENOSPC", "F4": "error=EIO"}
"""Fault -> what happens at the k-th call of that name."""
EVERY = {"pwrite64": 6, "fdatasync": 2, "ftruncate": 1, "unlink": 1}
"""Of many calls of a kind, so many are passed between two trials."""
PATIENCE_S = 30.0


class Traced(EverstepSubject):
    """Ours, whose first life is watched by strace, and struck once."""

    def __init__(self, strike: str, log: Path) -> None:
        super().__init__()
        self._watch = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={','.join(CALLS)}", *strike.split()]
        self._lives = 0

    def start(self, environ: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        self._lives += 1
        if self._lives > 1:
            return super().start(environ)
        with (self._folder / "child.log").open("ab") as said:
            return subprocess.Popen(
                [*self._watch, sys.executable, *self._program, str(self._folder)],
                env={**os.environ, "PYTHONPATH": str(self._source), **environ},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )


def missing() -> str | None:
    """Why it cannot be done here; None if it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()[-200:]}"


def count() -> dict[str, int]:
    """How many calls of each kind an undisturbed trial makes."""
    with tempfile.TemporaryDirectory(prefix="es-") as folder:
        log = Path(folder) / "calls.txt"
        trial(Path(folder), WORKLOAD, Plot(patience_s=PATIENCE_S), Traced("", log))
        text = log.read_text(encoding="utf-8", errors="replace")
    return {name: text.count(f"{name}(") for name in CALLS}


def play(fault: str, call: str, number: int) -> Line:
    """One strike; then it goes on, in this life or the next."""
    with tempfile.TemporaryDirectory(prefix="es-") as folder:
        subject = Traced(f"-e inject={call}:{HOW[fault]}:when={number}", Path(folder) / "calls.txt")
        report = trial(Path(folder), WORKLOAD, Plot(patience_s=PATIENCE_S), subject)
        if fault != "F1c" and report.account is None:
            # A store that refuses to open is an answer; somebody starts it again, and then all must be well.
            report = trial(Path(folder), WORKLOAD, Plot(patience_s=PATIENCE_S))
    ledger = report.ledger.as_json()
    wrong = [violation._asdict() for violation in report.violations]
    return {"verdict": verdict(wrong, *(ledger[one] for one in ("lost", "doubled", "dark"))), "kills": report.kills,
            "violations": wrong, **ledger}  # fmt: skip


def main(words: list[str]) -> int:
    """One strike, or all of them."""
    if words:
        print(json.dumps(play(words[0], words[1], int(words[2]))))
        return 0
    results, bad = Results.of_this_commit(), 0
    if (why := missing()) is not None:
        for fault in HOW:
            results.once(fault, 0, lambda: {"verdict": "not_run", "why": why})
        print(f"not run: {why}", file=sys.stderr)
        return 0 if os.environ.get("EVERSTEP_WAIVE") == "strace" else 1
    for call, most in count().items():
        for number in range(1, most + 1, EVERY[call]):
            for fault in HOW if call != "unlink" else ("F1c",):
                line = results.once(f"{fault} {call}", number, partial(play, fault, call, number))
                bad += line["verdict"] != "passed"
                print(f"{fault} {call} {number}: {line['verdict']} {line['violations'][:1]}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
