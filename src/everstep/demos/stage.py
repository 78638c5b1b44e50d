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

from everstep.demos.folder import DemoFolder
from everstep.demos.scenario import Scenario, Words, settle
from everstep.torture.ledger import Counts, Ledger
from everstep.torture.ledger import settle as hold_against

Json: TypeAlias = dict[str, Any]
Child: TypeAlias = "subprocess.Popen[bytes]"

POLL_S: Final = 0.02
INSIDE_S: Final = 0.3
"""How long after a call began it is killed."""
EXIT_NEEDS_SOMEONE: Final = 8
WORK_S: Final = 2.0
"""A life that chaos ends works for so long, at most."""
STARTS_MAX: Final = 100
_DEATH_SIGNAL: Final = 1


class StageError(Exception):
    """The child ended as no step of the scenario foresees."""

    def __init__(self, code: int, said: str = "") -> None:
        super().__init__(f"the command ended with exit code {code}{': ' if said else ''}{said}")
        self.code = code
        self.said = said
        """What nobody has seen yet."""


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

    def __init__(
        self, scenario: Scenario, folder: DemoFolder, *, pace: float, say: Callable[[str], None], quiet: bool
    ) -> None:
        self._scenario = scenario
        self._bill = scenario.bill
        self._folder = folder
        self._pace = pace
        self._say = say
        self._quiet = quiet
        self._unmarked = 0
        self.kills = 0

    def play(self, *, kill: bool) -> Performance:
        """Carry the task to its end; with `kill`, cut off in the middle once."""

        def once(child: Child) -> None:
            if kill and not self.kills and self._wait_until(child, self._bill.killed_in):
                time.sleep(INSIDE_S * self._pace)
                self._kill(child)
                self._say(f"\nkill -9 {child.pid}   the process is gone, in the middle of {self._bill.killed_in}")
                self._say("and the same command again:")

        return self._perform(once, hidden=False)

    def chaos(self, kills: int, seed: int) -> Performance:
        """Kill at seeded moments, once inside the marked call; somebody who looks at the world answers questions."""
        chance = random.Random(seed)  # noqa: S311 -- seeded, so that it can be repeated
        self._unmarked = kills

        def again(child: Child) -> None:
            if self._unmarked:
                self._strike(child, chance.uniform(0.02, 1.0) * WORK_S * self._pace)
            elif not self._folder.reached(self._bill.marked):
                self._strike(child, None)

        return self._perform(again, hidden=True)

    def _perform(self, strike: Callable[[Child], None], *, hidden: bool) -> Performance:
        """Give the command again until the scenario has ended; `strike` may kill the process that carries it."""
        with leaving_keys_to_child(), self._rig():
            words, code = self._scenario.begin(self._folder), 0
            for _ in range(STARTS_MAX):
                child = self._start(words, hidden=hidden)
                strike(child)
                code = child.wait()
                if code == -signal.SIGKILL:
                    continue
                if code == EXIT_NEEDS_SOMEONE:
                    self._answer_from_the_world()
                    continue
                follows = self._scenario.after(code, self._ask) if code in (0, 1) else None
                if follows is None:
                    break
                said, words = follows
                self._say(said)
            if code == 0:
                return self._account()
        raise StageError(code, self._folder.said.read_text(encoding="utf-8").strip() if hidden else "")

    # The child

    @contextmanager
    def _rig(self) -> Iterator[None]:
        """The world outlives every kill of the engine."""
        rig = subprocess.Popen(  # noqa: S603 -- our own program
            [sys.executable, "-m", "everstep.demos.rig", self._bill.world, str(self._folder.path), str(self._pace)],
            preexec_fn=following(),  # noqa: PLW1509 -- one thread here
            stdout=subprocess.PIPE,
        )
        try:
            assert rig.stdout is not None
            if not rig.stdout.readline():
                raise StageError(rig.wait(), "the world of this demo does not start")
            settle(self._scenario, self._folder)
            yield
        finally:
            rig.terminate()
            rig.communicate()

    def _start(self, words: Words, *, hidden: bool = False) -> Child:
        with self._folder.said.open("wb") as said:
            silent = said if hidden or self._quiet else None
            return subprocess.Popen(  # noqa: S603 -- our own command
                [sys.executable, "-m", "everstep", *words, "--no-input", *(["--json"] if hidden else [])],
                cwd=self._folder.path,
                preexec_fn=following(),  # noqa: PLW1509 -- as above
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

    def _wait_until(self, child: Child, step: str) -> bool:
        """Wait until a step reaches the world; false if the child ends before."""
        while not self._folder.reached(step):
            if child.poll() is not None:
                return False
            time.sleep(POLL_S)
        return True

    def _strike(self, child: Child, after_s: float | None) -> None:
        """Kill it inside the marked call, when that begins; at the latest so long after its first write."""
        waiting, before = not self._folder.reached(self._bill.marked), self._folder.written()
        begun = None
        while child.poll() is None:
            if begun is None and self._folder.written() != before:
                begun = time.monotonic()
            lived = 0.0 if begun is None else time.monotonic() - begun
            if waiting and self._folder.reached(self._bill.marked):
                self._kill(child)
                self._say(
                    f"kill {self.kills}   inside {self._bill.marked}, the call that must not be made twice unseen"
                )
            elif after_s is not None and lived > after_s:
                self._kill(child)
                self._unmarked -= 1
                made = [*self._folder.world()]
                last = f"the last call the world saw was {made[-1]['step']}" if made else "the world saw nothing yet"
                self._say(f"kill {self.kills}   {lived:.2f} s after its first write; {last}")
            time.sleep(POLL_S)

    def _kill(self, child: Child) -> None:
        child.kill()
        child.wait()
        self.kills += 1

    def _answer_from_the_world(self) -> None:
        """A person who looks whether it happened, and says so."""
        for pause in json.loads(self._ask("inbox", "--json"))["items"]:
            said, words = self._scenario.answer(self._folder, pause, self._ask)
            self._say(said)
            self._ask(*words, "--detach", "--json")

    # The end

    def _account(self) -> Performance:
        tasks = [one["id"] for one in json.loads(self._ask("ls", "--all", "--json"))["items"]]
        events = [json.loads(line) for task in tasks for line in self._ask("show", task, "--events").splitlines()]
        done = [event for event in events if event["type"] == "step.completed" and event["data"]["via"] != "copied"]
        items = [event["step"].partition("[")[0] for event in done if "[" in event["step"]]
        recorded = Counter(event["step"] for event in done if event["step"] not in items) + Counter(items)
        asked = Counter(event["step"] for event in events if event["type"] == "pause.opened" and event["step"])
        answers = [event for event in events if event["type"] == "pause.answered"]
        again = Counter(event["step"] for event in answers if event["data"]["answer"] == "not_happened")
        effects = {effect.name for effect in self._bill.effects}
        counts = Counts(
            made=self._folder.made(),
            recorded={step: count for step, count in recorded.items() if step in effects},
            asked=asked,
            decisions=again,
        )
        twice = Counter((event["task"], event["step"], event["generation"]) for event in done)
        return Performance(
            task=tasks[0],
            kills=self.kills,
            recoveries=sum(event["type"] == "task.recovered" for event in events),
            repeated=sum(count - 1 for count in twice.values()),
            ledger=hold_against(self._bill.effects, counts),
        )


def following() -> Callable[[], None] | None:
    """What a child does first, where it can be asked to end with its parent."""
    return die_with_parent if sys.platform == "linux" else None


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
