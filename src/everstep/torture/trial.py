"""The kill harness: starts a real process, kills its process group, starts it again, until the work is done.

It knows an engine only through a `Subject`: ours uses the public doors and nothing else, others can be driven the same
way. Kills come at random moments of a seed, spread over what a clean trial needs, or at a failpoint. Whatever is left
behind is judged by the checker and counted by the ledger.
"""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from everstep.torture.checker import Bounds, check, check_processes
from everstep.torture.history import Logs, Violation, read_client, read_effects, read_streams
from everstep.torture.ledger import Counts, Ledger, settle
from everstep.torture.nursery import nursery
from everstep.torture.workload import Workload

PATIENCE_S: Final = 60.0
"""A life that is not killed and still does not end in this time hangs."""
STACKS_S: Final = 2.0
OBEY_S: Final = 2.0
FAILPOINT_EXIT: Final = 86
"""How a process ends that a failpoint told to exit."""
BOUNDS: Final = Bounds(max_recoveries=1000, healed=True)


@dataclass(frozen=True, slots=True)
class Account:
    """What an engine says after the end: outputs, and per effect what it recorded, asked about, let be repeated."""

    outputs: Any
    recorded: Mapping[str, int]
    asked: Mapping[str, int]
    decisions: Mapping[str, int]


def account_in(folder: Path) -> Account | None:
    """As a child has left it there; None while it has not."""
    path = folder / "result.json"
    if not path.exists():
        return None
    said = json.loads(path.read_text(encoding="utf-8"))
    return Account(said["outputs"], said["recorded"], said["asked"], said["decisions"])


class Process(Protocol):
    """A life that can be waited for, as with `subprocess.Popen`; the first of its process group."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None:
        """How it ended; None while it lives."""

    def wait(self, timeout: float | None = None) -> int:
        """How it ended; raises TimeoutExpired."""

    def send_signal(self, sig: int) -> None:
        """To this one, not to its group."""


class Subject(Protocol):
    """An engine under trial: started and started again the same way, asked only from outside."""

    def prepare(self, folder: Path, workload: Workload) -> None:
        """Make everything ready that a first start needs."""

    def start(self, environ: Mapping[str, str]) -> Process:
        """Start the process, in a group of its own, or start it again after it was killed."""

    def account(self) -> Account | None:
        """What it says of the task; None while that has not ended."""

    def judge(self, logs: Logs) -> Iterable[Violation]:
        """What its own records prove against it."""


def born(words: Sequence[str], folder: Path, environ: Mapping[str, str], here: Path | None = None) -> Process:
    """A process in a group of its own; what it says is kept in the trial's folder."""
    with (folder / "child.log").open("ab") as said:
        return subprocess.Popen(  # noqa: S603 -- our own programs
            words,
            cwd=here,
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


CHILD: Final = "everstep.torture.child"


class EverstepSubject:
    """Ours: a child that uses the Python door."""

    def __init__(self) -> None:
        self._folder = Path()

    def prepare(self, folder: Path, workload: Workload) -> None:
        self._folder = folder
        workload.write(folder)

    def start(self, environ: Mapping[str, str]) -> Process:
        env = {**os.environ, **environ}
        with (self._folder / "child.log").open("ab") as said, Path(os.devnull).open("rb") as nothing:
            streams = nothing.fileno(), said.fileno(), said.fileno()
            return nursery().start(CHILD, [str(self._folder)], cwd=Path.cwd(), env=env, streams=streams)

    def account(self) -> Account | None:
        return account_in(self._folder)

    def judge(self, logs: Logs) -> Iterable[Violation]:
        try:
            return check(self._folder / "store.db", logs, BOUNDS)
        except sqlite3.Error as error:
            return [Violation("C1", "", 0, f"the store cannot be read: {error}")]


class ForeignSubject(EverstepSubject):
    """The same with code from elsewhere, which Python is started for."""

    def __init__(self, source: Path, program: Sequence[str] = ("-m", CHILD)) -> None:
        super().__init__()
        self._source = source
        self._program = program

    def start(self, environ: Mapping[str, str]) -> Process:
        words = [sys.executable, *self._program, str(self._folder)]
        return born(words, self._folder, {"PYTHONPATH": str(self._source), **environ})


@dataclass(frozen=True, slots=True)
class Life:
    """One process from start to end, which came by itself, by a kill, or never."""

    pid: int
    began_at: int
    seconds: float
    end: Literal["ended", "killed", "hung"]


@dataclass(slots=True)
class Report:
    """What a trial came to."""

    lives: list[Life] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    ledger: Ledger = field(default_factory=lambda: Ledger(()))
    account: Account | None = None
    progress_s: list[float] = field(default_factory=list)
    """From each start to the first effect after it."""
    work_s: float = 0.0
    """From the first effect to the last."""

    @property
    def kills(self) -> int:
        return sum(life.end == "killed" for life in self.lives)


@dataclass(frozen=True, slots=True)
class Moment:
    """When to strike one life: after a share of its start-up, or, since its first effect, of the work that is left."""

    inside: Literal["startup", "work"]
    share: float


@dataclass(frozen=True, slots=True)
class Plot:
    """One moment, or one set of failpoints, per life; when there are no more, it is left alone."""

    moments: tuple[Moment, ...] = ()
    startup_s: float = 0.0
    work_s: float = 0.0
    failpoints: tuple[str, ...] = ()
    patience_s: float = PATIENCE_S
    rest_s: float = 0.0
    """How long nobody starts it again."""


def random_plot(clean: Report, seed: int, kills: int) -> Plot:
    """Moments of a seed, spread over what a clean trial took; one of four is in the start-up, where recovery works."""
    chance = random.Random(seed)  # noqa: S311 -- seeded, so that a trial can be repeated
    moments = tuple(Moment("startup" if number % 4 == 3 else "work", chance.random()) for number in range(kills))
    return Plot(moments=moments, startup_s=min(clean.progress_s), work_s=clean.work_s)


def trial(folder: Path, workload: Workload, plot: Plot, subject: Subject | None = None) -> Report:
    """Carry the workload through all kills to its end, then judge what is left."""
    subject = subject or EverstepSubject()
    subject.prepare(folder, workload)
    world = World(folder / "effects.jsonl", workload)
    report = Report()
    moments, failpoints = iter(plot.moments), iter(plot.failpoints)
    while report.account is None:
        armed = next(failpoints, None)
        start = partial(subject.start, {} if armed is None else {"EVERSTEP_FAILPOINTS": armed})
        life = _live(start, plot, next(moments, None), world)
        report.lives.append(life)
        report.account = subject.account()
        if life.end != "killed" and report.account is None:
            what = f"a life {life.end} without a result after {life.seconds:.1f} s: {_last_words(folder)}"
            report.violations.append(Violation("C14", "", 0, what))
            break
        if report.account is None:
            time.sleep(plot.rest_s)
    _judge(folder, workload, subject, report)
    return report


@dataclass(frozen=True, slots=True)
class World:
    """What the harness can see from outside while a life lasts."""

    log: Path
    workload: Workload

    @property
    def left(self) -> float:
        """Which share of the work is still to do."""
        ended = {effect.step for effect in read_effects(self.log) if effect.what == "end"}
        return 1 - len(ended) / max(1, self.workload.steps)

    @property
    def size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0


def _live(start: Callable[[], Process], plot: Plot, moment: Moment | None, world: World) -> Life:
    """One life: until it ends by itself, or its time has come."""
    left, size = world.left, world.size
    began, began_at = time.monotonic(), time.time_ns() // 1_000_000
    process = start()
    end: Literal["ended", "killed", "hung"] = "ended"
    try:
        if moment is None:
            process.wait(plot.patience_s)
        elif moment.inside == "startup":
            process.wait(moment.share * plot.startup_s)
        else:
            _wait_for_effect(process, plot, world, size)
            process.wait(moment.share * plot.work_s * left)
        if process.returncode in {-signal.SIGKILL, FAILPOINT_EXIT}:
            end = "killed"
    except subprocess.TimeoutExpired:
        end = "killed" if moment is not None else "hung"
        if end == "hung":
            _ask_for_stacks(process)
    finally:
        _kill_group(process)
    return Life(process.pid, began_at, time.monotonic() - began, end)


def _wait_for_effect(process: Process, plot: Plot, world: World, size: int) -> None:
    until = time.monotonic() + plot.patience_s
    while process.poll() is None and world.size == size and time.monotonic() < until:
        time.sleep(0.001)


def _ask_for_stacks(process: Process) -> None:
    """A child that hangs tells in its log where: its threads, and its coroutines if its loop still turns."""
    process.send_signal(signal.SIGUSR1)
    process.send_signal(signal.SIGUSR2)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STACKS_S)


def _kill_group(process: Process) -> None:
    """The child, and whatever it started; a kill takes a moment to be obeyed."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    until = time.monotonic() + OBEY_S
    while _has_members(process.pid) and time.monotonic() < until:
        time.sleep(0.001)


def _has_members(group: int) -> bool:
    """Whether a process group has one that is more than an uncollected entry."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[:3]
            if int(its_group) == group and state not in {"Z", "X"}:
                return True
    return False


def _last_words(folder: Path) -> str:
    log = folder / "child.log"
    return log.read_text(encoding="utf-8", errors="replace")[-2000:] if log.exists() else "nothing was said"


def _judge(folder: Path, workload: Workload, subject: Subject, report: Report) -> None:
    logs = Logs(
        effects=read_effects(folder / "effects.jsonl"),
        client=read_client(folder / "client.jsonl"),
        streams=read_streams(folder / "streams.jsonl"),
    )
    starts = [effect for effect in logs.effects if effect.what == "start"]
    report.violations.extend(subject.judge(logs))
    report.violations.extend(check_processes({life.pid for life in report.lives}))
    for life in report.lives:
        first = next((effect.at for effect in starts if effect.pid == life.pid), None)
        if first is not None:
            report.progress_s.append((first - life.began_at) / 1000)
    if starts:
        report.work_s = (logs.effects[-1].at - starts[0].at) / 1000
    account = report.account
    if account is not None:
        counts = Counts(Counter(e.step for e in starts), account.recorded, account.asked, account.decisions)
        report.ledger = settle(workload.expected, counts)
        if account.outputs != {"value": workload.value}:
            report.violations.append(Violation("C2", "", 0, f"the outputs are {account.outputs}, not {workload.value}"))
