"""`everstep torture PLAN`: somebody's own plan, killed at every boundary of its way, and carried on each time.

    python -m everstep.torture.siege ORDER.json

A clean trial tells the boundaries: before and after each commit, before and after each call. Then one trial for each:
a real process, SIGKILL there, another one on the same store, the checker. What is left of the world and the plan's
outputs are held against the clean trial, so a tool that says it may be called again, and may not, is named.

Lives are forked from this process, which has everything imported and neither a loop nor a thread: a start costs
milliseconds. One line of JSON per trial goes to stdout, then the report.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from everstep.torture.besieged import CANARY, carry
from everstep.torture.checker import Bounds, check, check_canary
from everstep.torture.history import Logs, Violation, read_client, read_effects, read_journal, read_lines, read_streams
from everstep.torture.order import Order
from everstep.torture.trial import BOUNDS, PATIENCE_S

LEFT_OUT: Final = frozenset({".everstep", ".git", ".venv", "node_modules", "__pycache__"})
WORLD_BYTES_MAX: Final = 200 * 1024 * 1024
REPEATS: Final = frozenset({"pure", "idempotent", "verifiable"})
ADVICE: Final = "a probe or an idempotency key would remove the question, or on_uncertain: retry|fail"


@dataclass(frozen=True, slots=True)
class Siege:
    """How hard it is tried."""

    order: Order
    points: str = "all"
    kills: int = 10
    seed: int = 1


@dataclass(slots=True)
class Left:
    """What one trial left behind."""

    result: Mapping[str, Any] | None
    violations: list[Violation]
    starts: Counter[str]
    """Calls by step, as the world saw them."""
    tools: Mapping[str, tuple[str, str]]
    """Step -> its tool, and what that says of its effect."""
    asked: tuple[str, ...]
    repeated_once: int
    world: Mapping[str, str]
    point: str = ""
    kills: int = 0
    recovery_s: float | None = None
    known: bool = True
    """Whether it is known how far the interrupted call had come."""


@dataclass(slots=True)
class Findings:
    """The report."""

    points: int = 0
    kills: int = 0
    unreached: int = 0
    repeated_once: int = 0
    seed: int = 1
    violations: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, str]] = field(default_factory=list)
    recovery_s: dict[str, float] = field(default_factory=dict)
    varies: list[str] = field(default_factory=list)
    """What differs between two undisturbed trials, and is not compared."""


def lay(siege: Siege) -> Iterator[Mapping[str, Any]]:
    """Every trial as it ends, then the report as the last."""
    with tempfile.TemporaryDirectory(prefix="everstep-siege-") as base:
        stage = Stage(siege.order, Path(base))
        clean, again = stage.trial("clean"), stage.trial("clean")
        if clean.result is None or clean.violations or clean.result["status"] != "completed":
            yield {"refused": _why(clean)}
            return
        findings = Findings(seed=siege.seed, varies=sorted(_differences(clean, again)))
        every = stage.boundaries
        findings.points = len(every)
        chance = random.Random(siege.seed)  # noqa: S311 -- seeded, so that a siege can be repeated
        recoveries: list[float] = []
        for point, after_s in [
            *((point, None) for point in chosen(every, siege, chance)),
            *stage.moments(siege, chance),
        ]:
            left = stage.trial(point, after_s)
            findings.kills += left.kills
            findings.unreached += left.kills == 0
            findings.repeated_once += left.repeated_once
            recoveries += [] if left.recovery_s is None else [left.recovery_s]
            wrong = [*left.violations, *_blamed(clean, left, findings.varies)]
            findings.violations += [{"point": left.point, **violation._asdict()} for violation in wrong]
            _note_questions(findings, left)
            yield {"point": left.point, "kills": left.kills, "violations": [one.what for one in wrong]}
        findings.recovery_s = _percentiles(recoveries)
    yield {"report": asdict(findings)}


def chosen(every: Sequence[str], siege: Siege, chance: random.Random) -> list[str]:
    """All of them, so many, or the one that was named."""
    if siege.points == "all":
        return [*every]
    if siege.points.isdigit():
        return sorted(chance.sample(every, min(int(siege.points), len(every))), key=every.index)
    return [siege.points]


class Stage:
    """Where trials are played: each in a folder, and with `real` in a copy of the project, of its own."""

    def __init__(self, order: Order, base: Path) -> None:
        self._order = order
        self._base = base
        self._project = Path.cwd()
        self._number = 0
        self.boundaries: list[str] = []
        self._clean_s = 0.0

    def moments(self, siege: Siege, chance: random.Random) -> list[tuple[str, float]]:
        """Random kills: after so many seconds of a life."""
        return [(f"random {number}", chance.random() * self._clean_s) for number in range(1, siege.kills + 1)]

    def trial(self, point: str, after_s: float | None = None) -> Left:
        """One task to its end, through the kill if there is one; every other one dies a second time, in recovery."""
        self._number += 1
        folder = self._base / str(self._number)
        folder.mkdir()
        where = self._world(folder)
        kills, began, start, recovery_s = 0, 0, 0.0, None
        deadly = [None] if point == "clean" else [point if after_s is None else None, *self._second(), None]
        for life, name in enumerate(deadly):
            began, start = time.time_ns() // 1_000_000, time.monotonic()
            status = self._live(folder, where, name, after_s if life == 0 else PATIENCE_S)
            kills += status == -signal.SIGKILL
            if (folder / "result.json").exists():
                break
        if point == "clean":
            self._clean_s = time.monotonic() - start
            self.boundaries = [line["point"] for line in read_lines(folder / "points.jsonl")]
        if kills and (folder / "store.db").exists():
            recovery_s = _first_word(folder, began)
        left = self._judged(folder, where)
        left.point, left.kills, left.recovery_s, left.known = point, kills, recovery_s, after_s is None
        return left

    def _second(self) -> list[str | None]:
        return ["sweep.commit.after:1"] if self._number % 2 else []

    def _world(self, folder: Path) -> Path:
        if not self._order.real:
            return self._project
        where = folder / "project"
        size = sum(path.stat().st_size for path in _files(self._project))
        if size > WORLD_BYTES_MAX:
            raise SystemExit(f"the project folder has {size} bytes: too much to copy for every trial")
        shutil.copytree(self._project, where, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        return where

    def _live(self, folder: Path, where: Path, deadly: str | None, until_s: float | None) -> int:
        """Fork, carry, and wait; killed when its time is up. Returns how it ended, as `Popen.returncode` would."""
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            self._be_born(folder, where, deadly)
        until = time.monotonic() + (PATIENCE_S if until_s is None else until_s)
        try:
            while True:
                found, status = os.waitpid(pid, os.WNOHANG)
                if found:
                    return os.waitstatus_to_exitcode(status)
                if time.monotonic() > until:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.001)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)  # what it started; or itself, if somebody interrupts us

    def _be_born(self, folder: Path, where: Path, deadly: str | None) -> None:
        code = 1
        try:
            os.setsid()
            said = os.open(folder / "child.log", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(said, 1)
            os.dup2(said, 2)
            os.chdir(where)
            asyncio.run(carry(self._order, folder, deadly))
            code = 0
        except BaseException as error:  # noqa: BLE001 -- a forked child must never return into its parent's code
            import traceback

            traceback.print_exception(error)
        finally:
            os._exit(code)

    def _judged(self, folder: Path, where: Path) -> Left:
        effects = read_effects(folder / "effects.jsonl")
        result = json.loads((folder / "result.json").read_text()) if (folder / "result.json").exists() else None
        wrong: list[Violation] = []
        if result is None:
            log = folder / "child.log"
            wrong.append(Violation("C14", "", 0, f"it never came to an end: {log.read_text()[-1500:].strip()}"))
        if (folder / "store.db").exists():
            streams = read_streams(folder / "streams.jsonl")
            logs = Logs(effects=effects, client=read_client(folder / "client.jsonl"), streams=streams)
            wrong += check(
                folder / "store.db", logs, Bounds(max_recoveries=BOUNDS.max_recoveries, healed=result is not None)
            )
            wrong += check_canary(folder, CANARY)
        tools, asked, repeated = _told(folder / "store.db", effects)
        starts = Counter(effect.step for effect in effects if effect.what == "start")
        task = result["task"] if result else ""
        world = _tree(where, task) if self._order.real else {}
        if result is not None:
            world |= {"the outputs": json.dumps(result["outputs"], sort_keys=True).replace(task, "TASK")}
        return Left(result, wrong, starts, tools, asked, repeated, world)


def _told(store: Path, effects: Sequence[Any]) -> tuple[dict[str, tuple[str, str]], tuple[str, ...], int]:
    """Of the journal: the tools of its steps, where somebody was asked after a crash, `once` calls made twice."""
    tools: dict[str, tuple[str, str]] = {}
    asked: list[str] = []
    if not store.exists():
        return tools, (), 0
    for events in read_journal(store).events.values():
        for event in events:
            if event.type == "attempt.started":
                tools[str(event.step)] = (str(event.data.get("tool")), str(event.data.get("effect")))
            if event.type == "pause.opened":
                reason = (event.data.get("pause") or event.data).get("reason") or {}
                asked += [str(event.step)] if reason.get("type") == "uncertainOutcome" else []
    keys = Counter(
        effect.key for effect in effects if effect.what == "start" and tools.get(effect.step, ("", ""))[1] == "once"
    )
    return tools, tuple(asked), sum(count - 1 for count in keys.values())


def _blamed(clean: Left, left: Left, varies: Sequence[str]) -> Iterator[Violation]:
    """What came out differently, and which repeated call is the reason."""
    if left.result is None or not left.known:
        return
    if left.result["status"] != clean.result["status"]:  # type: ignore[index]
        yield Violation("C2", "", 0, f"it ended {left.result['status']}: {left.result['error']}")
    different = [name for name in _differences(clean, left) if name not in varies]
    if not different:
        return
    what = ", ".join(sorted(different)[:5])
    again = [step for step, count in left.starts.items() if count > clean.starts.get(step, 0)]
    for step in again:
        tool, effect = left.tools.get(step, ("?", "?"))
        if effect in REPEATS:
            says = f"{tool} (step {step}) says it is `{effect}`, but calling it again changed {what}"
            yield Violation("tool", "", 0, says)
    if not again:
        yield Violation("C2", "", 0, f"{what} came out differently than in the clean trial")


def _differences(one: Left, other: Left) -> set[str]:
    return {name for name in one.world.keys() | other.world.keys() if one.world.get(name) != other.world.get(name)}


def _note_questions(findings: Findings, left: Left) -> None:
    known = {one["step"] for one in findings.questions}
    for step in left.asked:
        if step not in known:
            known.add(step)
            tool, effect = left.tools.get(step, ("?", "?"))
            findings.questions.append(
                {"step": step, "tool": tool, "effect": effect, "point": left.point, "advice": ADVICE}
            )


def _why(clean: Left) -> str:
    if clean.violations:
        return clean.violations[0].what
    result = clean.result or {}
    stuck = "; ".join(result.get("stuck") or ())
    return f"undisturbed, it ends {result.get('status')}: {stuck or result.get('error') or 'nobody knows why'}"


def _tree(folder: Path, task: str) -> dict[str, str]:
    """Every file, by its name; the task's id means the same in all of them."""
    found = {}
    for path in _files(folder):
        content = path.read_bytes().replace(task.encode(), b"TASK") if task else path.read_bytes()
        name = str(path.relative_to(folder)).replace(task, "TASK") if task else str(path.relative_to(folder))
        found[name] = hashlib.sha256(content).hexdigest()
    return found


def _files(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        yield from (path for name in names if (path := Path(root) / name).is_file() and not path.is_symlink())


def _first_word(folder: Path, began: int) -> float | None:
    """From the last start to the first line that it wrote."""
    times = [event.at for events in read_journal(folder / "store.db").events.values() for event in events]
    later = [at for at in times if at >= began]
    return (min(later) - began) / 1000 if later else None


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        return {}
    ranked = sorted(seconds)
    return {"p50": ranked[len(ranked) // 2], "p95": ranked[min(len(ranked) - 1, len(ranked) * 95 // 100)]}


def main(path: str) -> int:
    """Read the order, lay siege, tell."""
    said = json.loads(Path(path).read_text(encoding="utf-8"))
    siege = Siege(Order(**said.pop("order")), **said)
    wrong = False
    for line in lay(siege):
        print(json.dumps(line), flush=True)
        wrong = wrong or "refused" in line or bool(line.get("violations"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
