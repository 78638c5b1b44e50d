"""Struck at the k-th system call of the store: killed there, or told that the disk is full or broken.

    python -m tests.fault.calls                   every k, into the results
    python -m tests.fault.calls F3 pwrite64 7     one of them; 7+: from there on, for a while

`strace` does it, from outside, so no line of ours knows. Lives are forked from this process, which has neither a loop
nor a thread, and wait until `strace` has hold of them. Without `strace`, or where it may not trace, the faults are
written down as not run, with the reason; that fails the suite unless `EVERSTEP_WAIVE=strace` says that it is known.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from everstep.torture.child import carry, pause_often
from everstep.torture.results import Line, Results, verdict
from everstep.torture.trial import EverstepSubject, Plot, Process, trial
from everstep.torture.workload import Workload

W1 = Workload(steps=20, call_s=0.002)
SMALL = Workload(steps=4, call_s=0.002)
CALLS = ("pread64", "pwrite64", "fdatasync", "ftruncate", "unlink", "rename")
HOW = {"F1c": "signal=SIGKILL", "F3": "error=ENOSPC", "F4": "error=EIO"}
"""Fault -> what happens at the k-th call of that name."""
ALIKE = 5
"""Of the faults that last, so many are passed between two trials: each takes its time."""
PATIENCE_S, TICK_S = 30.0, 0.002
LASTS_S = 0.7
"""How long a disk stays full or broken, once it is."""
CALLED = re.compile(r"^(\d+) +(\w+)\(", re.MULTILINE)


class Reach(NamedTuple):
    """Up to which call a fault is tried, once and for a while."""

    workload: Workload
    calls: Mapping[str, int]
    lasting: bool = True


REACH = {
    "F1c": Reach(W1, dict.fromkeys(CALLS[1:], sys.maxsize), lasting=False),
    "F3": Reach(SMALL, {"pwrite64": 150, "fdatasync": 150, "ftruncate": 150}),
    "F4": Reach(SMALL, {"pread64": 100, "pwrite64": 100, "fdatasync": 100}),
}


class Watched:
    """A forked life in the hands of `strace`, which lets go of it a while after the first strike that lasts."""

    def __init__(self, pid: int, strace: "subprocess.Popen[bytes] | None", log: Path, *, lasting: bool) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._strace = strace
        self._log = log
        self._lasting = lasting
        self._struck = 0.0

    def poll(self) -> int | None:
        if self.returncode is None:
            if self._lasting and self._strace is not None:
                self._let_go_in_time(self._strace)
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.returncode = os.waitstatus_to_exitcode(status)
                if self._strace is not None:
                    self._strace.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        until = time.monotonic() + (PATIENCE_S if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("a watched life", timeout or PATIENCE_S)
            time.sleep(TICK_S)
        return code

    def send_signal(self, sig: int) -> None:
        os.kill(self.pid, sig)

    def _let_go_in_time(self, strace: "subprocess.Popen[bytes]") -> None:
        if not self._struck and b"(INJECTED)" in self._log.read_bytes():
            self._struck = time.monotonic()
        if self._struck and time.monotonic() > self._struck + LASTS_S:
            strace.terminate()
            self._lasting = False


class Traced(EverstepSubject):
    """Ours, whose first life is watched by `strace`, and struck; None: nobody watches."""

    def __init__(self, log: Path, strike: str | None = "") -> None:
        super().__init__()
        self._log = log
        self._strike = strike

    def start(self, environ: Mapping[str, str]) -> Process:
        waits, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go)
            self._be_born(waits, environ)
        os.close(waits)
        strike, self._strike = self._strike, None
        strace = None if strike is None else self._watch(pid, strike)
        os.close(go)
        return Watched(pid, strace, self._log, lasting=(strike or "").endswith("+"))

    def _watch(self, pid: int, strike: str) -> "subprocess.Popen[bytes]":
        inject = ["-e", f"inject={strike}"] if strike else []
        words = ["strace", "-f", "-qq", "-o", str(self._log), "-e", f"trace={','.join(CALLS)}", *inject]
        strace = subprocess.Popen([*words, "-p", str(pid)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while strace.poll() is None and not held(pid):
            time.sleep(TICK_S)
        return strace

    def _be_born(self, waits: int, environ: Mapping[str, str]) -> None:
        code = 1
        try:
            os.setsid()
            said = os.open(self._folder / "child.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            os.dup2(said, 1)
            os.dup2(said, 2)
            os.environ.update(environ)
            os.read(waits, 1)
            asyncio.run(carry(self._folder, pause_often))
            code = 0
        except BaseException as error:  # noqa: BLE001 -- a forked child never returns into its parent's code
            import traceback

            traceback.print_exception(error)
        finally:
            os._exit(code)


def held(pid: int) -> bool:
    """Whether somebody traces it."""
    return re.search(r"^TracerPid:\s*[1-9]", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE) is not None


def missing() -> str | None:
    """Why it cannot be done here; None if it can."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()[-200:]}"


def count(workload: Workload) -> dict[str, int]:
    """How many calls of each kind an undisturbed trial makes: `strace` counts them by thread."""
    with tempfile.TemporaryDirectory(prefix="es-") as folder:
        log = Path(folder) / "calls.txt"
        trial(Path(folder), workload, Plot(patience_s=PATIENCE_S), Traced(log))
        made = Counter(CALLED.findall(log.read_text(encoding="utf-8", errors="replace")))
    return {name: max((times for (_, call), times in made.items() if call == name), default=0) for name in CALLS}


def play(fault: str, call: str, when: str) -> Line:
    """One strike; then it goes on, in this life or the next."""
    with tempfile.TemporaryDirectory(prefix="es-") as folder:
        log = Path(folder) / "calls.txt"
        subject = Traced(log, f"{call}:{HOW[fault]}:when={when}")
        report = trial(Path(folder), REACH[fault].workload, Plot(patience_s=PATIENCE_S), subject)
        struck = report.kills if fault == "F1c" else log.read_bytes().count(b"(INJECTED)")
        if fault != "F1c" and report.account is None:
            # A store that refuses to open is an answer; somebody starts it again, and then all must be well.
            report = trial(Path(folder), REACH[fault].workload, Plot(patience_s=PATIENCE_S), Traced(log, None))
    ledger = report.ledger.as_json()
    wrong = [violation._asdict() for violation in report.violations]
    return {"verdict": verdict(wrong, *(ledger[one] for one in ("lost", "doubled", "dark"))), "kills": report.kills,
            "struck": struck, "violations": wrong, **ledger}  # fmt: skip


def strikes(counted: Callable[[Workload], Mapping[str, int]]) -> Iterator[tuple[str, str, str, int]]:
    """Fault, call, moment as `strace` writes it, and its number."""
    for fault, reach in REACH.items():
        there = counted(reach.workload)
        for call, most in reach.calls.items():
            for number in range(1, min(most, there[call]) + 1):
                yield fault, call, str(number), number
                if reach.lasting and number % ALIKE == 1:
                    yield fault, call, f"{number}+", number


def main(words: list[str]) -> int:
    """One strike, or all of them."""
    if words:
        print(json.dumps(play(words[0], words[1], words[2])))
        return 0
    results, bad, seen = Results.of_this_commit(), 0, Counter[str]()
    if (why := missing()) is not None:
        for fault in HOW:
            results.once(fault, 0, lambda: {"verdict": "not_run", "why": why})
        print(f"not run: {why}", file=sys.stderr)
        return 0 if "strace" in os.environ.get("EVERSTEP_WAIVE", "").split(",") else 1
    for fault, call, when, number in strikes(count):
        lasts = " for a while" if when.endswith("+") else ""
        line = results.once(f"{fault} {call}{lasts}", number, partial(play, fault, call, when))
        bad += line["verdict"] != "passed"
        seen.update({fault: 1, f"{fault} struck": bool(line["struck"])})
        if line["verdict"] != "passed":
            print(f"{fault} {call} {when}: {line['verdict']} {line['violations'][:1]}", flush=True)
    told = ", ".join(f"{fault} {seen[fault]} trials, {seen[f'{fault} struck']} of them struck" for fault in HOW)
    print(f"{told}; {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
