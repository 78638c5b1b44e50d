"""The demo as it is performed: a child carries the task through the public command line, the parent kills it.

The parent knows nothing of the engine. It sees what anybody sees: the child's exit code, the world, and the journal
as `everstep show --events` prints it.
"""

import ctypes
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from everstep.demos.folder import PLAN, DemoFolder
from everstep.torture.ledger import Counts, Expected, Ledger, settle

Json: TypeAlias = dict[str, Any]

POLL_S: Final = 0.02
INSIDE_S: Final = 0.3
"""How long after a call began it is killed."""
MARKED: Final = "post"
"""The call that must never be made twice."""
READS: Final = ("find", "read_1", "read_2", "read_3", "read_4", "read_5")
KILLED_IN: Final = "read_3"
EXIT_NEEDS_SOMEONE: Final = 8
STARTS_MAX: Final = 100
_DEATH_SIGNAL: Final = 1


class StageError(Exception):
    """The child ended as no step of the scenario foresees."""

    def __init__(self, code: int, said: str = "") -> None:
        super().__init__(f"the command ended with exit code {code}{': ' if said else ''}{said}")
        self.code = code


@dataclass(slots=True)
class Performance:
    """What came of it."""

    task: str = ""
    kills: int = 0
    recoveries: int = 0
    repeated: int = 0
    """Steps executed again although their outcome was recorded."""
    ledger: Ledger = field(default_factory=lambda: Ledger(()))

    @property
    def passed(self) -> bool:
        """Nothing lost, nothing doubled, nothing unknown."""
        found = self.ledger
        return not (found.lost or found.doubled or found.dark or self.repeated)


class Stage:
    """One demo in its folder."""

    def __init__(self, folder: DemoFolder, *, pace: float, say: Callable[[str], None], quiet: bool) -> None:
        self._folder = folder
        self._pace = pace
        self._say = say
        self._quiet = quiet
        self.kills = 0

    def play(self, *, kill: bool) -> Performance:
        """Carry the task to its end; with `kill`, cut off in the middle once."""
        with leaving_keys_to_child():
            child = self._start("run", PLAN, "-i", f"pace={self._pace}")
            if kill and self._wait_until(child, KILLED_IN):
                time.sleep(INSIDE_S * self._pace)
                self._kill(child)
                self._say(f"\nkill -9 {child.pid}   the process is gone, in the middle of {KILLED_IN}")
                self._say("and the same command again:")
                child = self._start("run", PLAN, "-i", f"pace={self._pace}")
            code = child.wait()
            if code != 0:
                raise StageError(code)
            return self._account()

    def chaos(self, kills: int, seed: int) -> Performance:
        """Kill at seeded moments, once inside the marked call; somebody who looks at the world answers questions."""
        chance = random.Random(seed)  # noqa: S311 -- seeded, so that it can be repeated
        with leaving_keys_to_child():
            for _ in range(STARTS_MAX):
                child = self._start("run", PLAN, "-i", f"pace={self._pace}", "--json", "--no-input", hidden=True)
                if self.kills < kills:
                    self._kill_in_the_midst(child, chance.uniform(0.05, 1.6) * self._pace)
                elif self.kills == kills and self._wait_until(child, MARKED):
                    self._kill(child)
                    self._say(f"kill {self.kills}   inside the call that must not be made twice")
                code = child.wait()
                if code == 0:
                    return self._account()
                if code == EXIT_NEEDS_SOMEONE:
                    self._answer_from_the_world()
                elif code != -signal.SIGKILL:
                    raise StageError(code, self._folder.said.read_text(encoding="utf-8").strip())
        raise StageError(1)

    # The child

    def _start(self, *words: str, hidden: bool = False) -> subprocess.Popen[bytes]:
        with self._folder.said.open("wb") as said:
            silent = said if hidden or self._quiet else None
            return subprocess.Popen(  # noqa: S603 -- our own command
                [sys.executable, "-m", "everstep", *words],
                cwd=self._folder.path,
                preexec_fn=die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509 -- one thread here
                stdout=subprocess.DEVNULL if silent else None,
                stderr=silent,
            )

    def _ask(self, *words: str) -> str:
        done = subprocess.run(  # noqa: S603 -- our own command
            [sys.executable, "-m", "everstep", *words],
            cwd=self._folder.path,
            capture_output=True,
            check=False,
            text=True,
        )
        if done.returncode not in (0, EXIT_NEEDS_SOMEONE):
            raise StageError(done.returncode, done.stderr.strip())
        return done.stdout

    def _wait_until(self, child: subprocess.Popen[bytes], step: str) -> bool:
        """Wait until a step reaches the world; false if the child ends before."""
        while not self._folder.reached(step):
            if child.poll() is not None:
                return False
            time.sleep(POLL_S)
        return True

    def _kill_in_the_midst(self, child: subprocess.Popen[bytes], length_s: float) -> None:
        """Let it begin a call, then a while more."""
        before = len([*self._folder.world()])
        while len([*self._folder.world()]) == before:
            if child.poll() is not None:
                return
            time.sleep(POLL_S)
        try:
            child.wait(length_s)
        except subprocess.TimeoutExpired:
            self._kill(child)
            begun = [*self._folder.world()][-1]["step"]
            self._say(f"kill {self.kills}   {length_s:.1f} s after its first call, the last call begun was {begun}")

    def _kill(self, child: subprocess.Popen[bytes]) -> None:
        child.kill()
        child.wait()
        self.kills += 1

    def _answer_from_the_world(self) -> None:
        """A person who looks whether it happened, and says so."""
        for pause in json.loads(self._ask("inbox", "--json"))["items"]:
            found = self._folder.find(pause["reason"]["idempotencyKey"])
            answer = ["not_happened"] if found is None else ["happened", "--value", json.dumps(found["output"])]
            self._say(f"asked: {pause['title']} The notice board says: {answer[0]}")
            self._ask("answer", pause["id"], *answer, "--detach", "--json", "--note", "seen on the board")

    # The end

    def _account(self) -> Performance:
        events = [json.loads(line) for line in self._ask("show", "@last", "--events").splitlines()]
        task = events[0]["task"]
        recorded = Counter(event["step"] for event in events if event["type"] == "step.completed")
        asked = Counter(event["step"] for event in events if event["type"] == "pause.opened" and event["step"])
        answers = [event for event in events if event["type"] == "pause.answered"]
        again = Counter(event["step"] for event in answers if event["data"]["answer"] == "not_happened")
        expected = [Expected(step, repeatable=True) for step in READS] + [Expected(MARKED)]
        counts = Counts(
            made=self._folder.made(task),
            recorded={step: count for step, count in recorded.items() if step in (*READS, MARKED)},
            asked=asked,
            decisions=again,
        )
        return Performance(
            task=task,
            kills=self.kills,
            recoveries=sum(event["type"] == "task.recovered" for event in events),
            repeated=sum(count - 1 for count in recorded.values()),
            ledger=settle(expected, counts),
        )


def die_with_parent() -> None:
    """A child whose parent was killed goes too, as if one process had been killed."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


@contextmanager
def leaving_keys_to_child() -> Iterator[None]:
    """Ctrl-C is for the child: it pauses, and the parent waits for it."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
