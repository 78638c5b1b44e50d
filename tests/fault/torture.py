"""`make torture`: every long suite by one command, within an hour on two cores, and the report of what it found.

    python -m tests.fault.torture                 what fits into an hour
    python -m tests.fault.torture --release       the largest figures; a day
    python -m tests.fault.torture fleet mutants   these parts only

Parts that measure time come first, one by one; the others go three at a time. Those that do not mind how long they
take go beside them from the beginning, with no more than the others leave of the machine. Each has its own log below
`torture-logs/` and a line in the results; one that stood there as passed for this commit is not repeated, and most of
them also go on inside where they were interrupted. Exit 1 if any part failed, was cut off, or could not be run.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Literal, get_args

import psutil

from everstep.torture.results import Line, Results, verdict

Lane = Literal["alone", "beside", "shared"]
LOGS = Path("torture-logs")
LANES, BESIDE = 3, 2
"""Parts wait as much as they work, so there are more lanes than cores."""
NICE = 5
"""Of those beside the others: enough to be no trouble, and not so much that they would never end."""
SAID_MAX = 2_000
END_S = 10
"""A process that is killed may take so long to be gone."""
SLOWER = 24
"""How much more time a part has on the day before a release."""


@dataclass(frozen=True)
class Part:
    """A suite: its command after `python -m`, the minutes it may take, and what it wants around it."""

    name: str
    command: str
    minutes: float
    lane: Lane = "shared"
    environ: Mapping[str, str] | None = None

    @property
    def words(self) -> list[str]:
        return [sys.executable, "-m", *shlex.split(self.command)]


def parts(*, release: bool) -> tuple[Part, ...]:
    """The longest first, so that all lanes end together."""
    times = SLOWER if release else 1
    kills, points, storms = (10_000, 50, 40) if release else (500, 5, 4)
    pytest = "pytest -q -p no:cacheprovider"
    return (
        Part("fleet", f"tests.fault.fleet_campaign 1000 1 {'200 500 1000' if release else '50 200 300'}",
             20 * times, lane="alone"),
        Part("crowds", "tests.fault.crowds", 5, lane="alone"),
        Part("lease", f"{pytest} tests/fault/test_lease.py", 4, lane="alone", environ={"EVERSTEP_TEST_BUSY_S": "120"}),
        Part("kills", f"everstep.torture --kills {kills} --points {points}", 40 * times),
        Part("calls", "tests.fault.calls", 20 * times),
        Part("others", "bench.kill", 25),
        Part("again", "tests.fault.again", 20),
        Part("soak", f"tests.fault.soak --minutes {480 if release else 10} --tasks 10000", 20 * times),
        Part("simulation", f"tests.fault.simulate --all {500_000 if release else 20_000} --minutes {30 * times}",
             40 * times, lane="beside"),
        Part("exhaustive", "tests.fault.exhaust", 25 * times, lane="beside"),
        Part("power", "tests.fault.power", 10 * times, lane="beside"),
        Part("mutants", "tests.fault.mutants", 8),
        Part("sieges", "tests.fault.sieges", 10),
        Part("errands", "tests.fault.errands", 10),
        Part("storms", f"{pytest} tests/fault/test_storm.py tests/fault/test_kills.py", 10 * times,
             environ={"EVERSTEP_TEST_KILLS": "25", "EVERSTEP_TEST_STORMS": str(storms)}),
        Part("demos", f"{pytest} tests/e2e/test_one_file_to_fleet.py", 10,
             environ={"EVERSTEP_TEST_DEMOS": "research,release,incident"}),
        Part("model", f"{pytest} --timeout 0 tests/model", 12 * times,
             environ={"EVERSTEP_TEST_EXAMPLES": "20000" if release else "1000"}),
        Part("temporal", f"tests.fault.temporal_campaign {200 if release else 30}", 12 * (4 if release else 1)),
        Part("wires", f"tests.fault.wires --all {500 if release else 80}", 20 * (7 if release else 1)),
        Part("values", f"tests.fault.no_result --all {100_000 if release else 20_000}", 8 * (5 if release else 1)),
        Part("fuzz", f"tests.fault.fuzz --all {200_000 if release else 30_000}", 6 * (8 if release else 1)),
        Part("collisions", f"tests.fault.collide --all {5_000 if release else 1_000}", 4 * (5 if release else 1)),
        Part("dropped", f"tests.fault.dropped --all {5_000 if release else 1_000}", 4),
        Part("seam", f"tests.fault.seam --all {1_000 if release else 500}", 4),
        Part("halves", f"tests.fault.half_said --all {2_000 if release else 500}", 4 * (4 if release else 1)),
        Part("agents", "everstep.torture.agent_kills", 6),
        Part("proxy", "tests.fault.proxy_kills", 12),
        Part("leftovers", "tests.fault.leftovers", 6),
        Part("cuts", "bench.cuts", 4),
        Part("flips", "bench.flips", 4),
        Part("escapes", "tests.security.escapes", 6),
        Part("kernel", "tests.fault.kernel_v2", 6),
        Part("tools", f"{pytest} tests/conformance/test_real_tools.py", 8, environ={"EVERSTEP_TEST_WHOLE": "1"}),
    )  # fmt: skip


def play(part: Part) -> Line:
    """To its end, or to the end of its time."""
    LOGS.mkdir(exist_ok=True)
    log, environ = LOGS / f"{part.name}.log", {**os.environ, **(part.environ or {})}
    with log.open("wb") as said:
        process = subprocess.Popen(
            part.words, env=environ, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            if part.lane == "beside":
                os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
            code: int | None = process.wait(part.minutes * 60)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            end(process.pid)
            process.wait()
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    said_last = f"cut off after {part.minutes:g} min; " if code is None else ""
    last = said_last + (lines[-1] if lines else "")
    return {"verdict": verdict(code != 0), "command": command_of(part), "said": last[:SAID_MAX]}


def end(pid: int) -> None:
    """A part and whatever it has started, also in sessions of their own; of one that has ended, what it left behind."""
    started: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        started = psutil.Process(pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    for one in started:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(started, timeout=END_S)


def command_of(part: Part) -> str:
    """What repeats it."""
    return " ".join([*(f"{name}={value}" for name, value in (part.environ or {}).items()), "python -m", part.command])


class Run:
    """One run of some parts."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._writing = Lock()

    def all(self, wanted: Sequence[Part]) -> list[Line]:
        """Those that want no other of their kind first; the patient ones beside all others."""
        alone, beside, shared = ([part for part in wanted if part.lane == lane] for lane in get_args(Lane))
        with ThreadPoolExecutor(BESIDE) as patient, ThreadPoolExecutor(LANES) as lanes:
            waited_for = patient.map(self._one, beside)
            lines = [self._one(part) for part in alone]
            return [*lines, *lanes.map(self._one, shared), *waited_for]

    def _one(self, part: Part) -> Line:
        name = f"part {part.name}"
        known = self._results.done.get((name, 0))
        if known is not None and known["verdict"] == "passed":
            return known
        began = time.monotonic()
        line = play(part)
        with self._writing:
            self._results.done.pop((name, 0), None)
            kept = self._results.once(name, 0, partial(told, line, time.monotonic() - began))
        print(f"{kept['verdict']:<7} {part.name:<11} {kept['took_s']:>5} s  {kept['said'][:150]}", flush=True)
        return kept


def told(line: Line, seconds: float) -> Line:
    return {**line, "took_s": round(seconds)}


def chosen(words: Sequence[str], every: Sequence[Part]) -> Iterator[Part]:
    """All of them, or those that are named."""
    unknown = {*words} - {part.name for part in every}
    assert not unknown, f"there are no such parts: {', '.join(sorted(unknown))}"
    yield from (part for part in every if not words or part.name in words)


def main(words: Sequence[str]) -> int:
    """All that is wanted, then the report."""
    every = parts(release="--release" in words)
    wanted = [*chosen([word for word in words if word != "--release"], every)]
    began = time.monotonic()
    lines = Run(Results.of_this_commit()).all(wanted)
    bad = [line["fault"] for line in lines if line["verdict"] != "passed"]
    report = subprocess.run([sys.executable, "scripts/write_proof.py"], check=False)
    took = round((time.monotonic() - began) / 60)
    print(json.dumps({"parts": len(lines), "failed": bad, "minutes": took}))
    return 1 if bad or report.returncode else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
