"""Everything at once: calls that end in the moment in which their time does, while somebody cancels and pauses, and
the lease is lost. Whatever comes first, a task ends once.

    python -m tests.fault.collide                 1,000 collisions, into the results; --all: another number
    python -m tests.fault.collide --seed 7        one again, told act by act
"""

import argparse
import random
import sys
from collections import Counter
from functools import partial

from everstep.torture.results import Line, Results, verdict
from tests.fault.calm import nowhere
from tests.fault.sim_world import ABOUT_MS, TIMED_MS
from tests.fault.simulate import ENDED, LATENCIES_MS, STORES, Act, Options, Story, simulate

SEEDS, CHUNK = 1_000, 100
ROUNDS = 3
"""A call that ran out of time has another try; each time everything comes together again."""
TOGETHER = ("cancel", "pause", "pause", "resume", "twin", "crash", "answer", "advance", "advance", "refuse")
ENDS = tuple(f"task.{end}" for end in ENDED)


def script_of(seed: int) -> list[Act]:
    """Calls begin; just before they end, everything else is done in some order, with a millisecond here and there."""
    chance = random.Random(f"collision {seed}")
    script = [Act(0, "start", chance.random())]
    for _ in range(ROUNDS):
        script.append(passing(TIMED_MS - chance.randint(0, ABOUT_MS)))
        for what in chance.sample(TOGETHER, chance.randint(3, len(TOGETHER))):
            act = Act(chance.randrange(8), what, chance.random())
            script.append(passing(chance.randint(1, 2)) if what == "advance" else act)
    return script


def passing(ms: int) -> Act:
    """So many milliseconds of virtual time."""
    return Act(0, "advance", (ms - 0.5) / 3000)


def options_of(seed: int) -> Options:
    """A store that answers at once, or one that takes about as long as what it is asked in between."""
    chance = random.Random(f"collision options {seed}")
    return Options(chance.choice((0, *LATENCIES_MS[:2])), "race", chance.choice([*STORES]))


def collide(seed: int) -> Story:
    """One collision; a task that ended twice, or not at all, is wrong whatever the checker says."""
    story = simulate(seed, script_of(seed), options_of(seed))
    ends, tasks = sum(story.seen[end] for end in ENDS), story.seen["task.created"]
    if ends != tasks:
        story.wrong.append(f"{tasks} tasks have {ends} ends")
    return story


def play(first: int, seeds: int) -> Line:
    """So many."""
    wrong, seen = list[str](), Counter[str]()
    with nowhere():
        for seed in range(first, first + seeds):
            story = collide(seed)
            wrong += [f"collision {seed}: {what}" for what in story.wrong[:3]]
            seen += story.seen
    return {"verdict": verdict(wrong), "trials": seeds, "violations": wrong[:20], "seen": seen}


def main() -> int:
    """One, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--all", type=int, default=SEEDS)
    given = parser.parse_args()
    if given.seed is not None:
        with nowhere():
            wrong = collide(given.seed).wrong
        print(options_of(given.seed))
        print("\n".join([*(f"{act.turns:>3} {act.what} {act.draw:.3f}" for act in script_of(given.seed)), *wrong]))
        return 1 if wrong else 0
    results, bad, seen = Results.of_this_commit(), 0, Counter[str]()
    for first in range(1, given.all, CHUNK):
        line = results.once("F44", first, partial(play, first, CHUNK))
        bad += line["verdict"] != "passed"
        seen += Counter(line["seen"])
        print(f"collisions {first} to {first + CHUNK - 1}: {line['verdict']} {line['violations'][:2]}", flush=True)
    ends = ", ".join(f"{seen[name]} {name}" for name in (*ENDS, "attempt.timed_out", "attempt.abandoned", "late_write"))
    print(f"{given.all} collisions: {ends}; {bad} hundreds with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
