"""Retry, fork, patch, undo and sub-plans, killed around each of their commits: nothing is lost, nothing is doubled."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from everstep.torture.checker import check
from everstep.torture.history import Logs, read_client, read_effects
from everstep.torture.points import BY_THE_STORY, STORY
from everstep.torture.trial import BOUNDS
from tests.fault.mutants import SOURCE

PATIENCE_S = 60.0
COMMITS = [
    *(f"command.commit.{when}:{hit}" for when in ("before", "after") for hit in range(1, 5)),
    *(f"create.commit.{when}:{hit}" for when in ("before", "after") for hit in range(1, 5)),
    *(f"outcome.commit.{when}:{hit}" for when in ("before", "after") for hit in (2, 5, 8)),
]


def live(folder: Path, armed: str | None) -> int:
    environ = {**os.environ, "PYTHONPATH": str(SOURCE)}
    if armed is not None:
        environ["EVERSTEP_FAILPOINTS"] = f"{armed}=sigkill"
    with (folder / "child.log").open("ab") as said:
        done = subprocess.run(
            [sys.executable, "-m", STORY, str(folder)],
            env=environ,
            stdout=said,
            stderr=said,
            timeout=PATIENCE_S,
            check=False,
        )
    return done.returncode


@pytest.mark.req("X.9")
@pytest.mark.parametrize("point", [None, *sorted(BY_THE_STORY), *COMMITS])
def test_killed_at(tmp_path: Path, point: str | None) -> None:
    codes = [] if point is None else [live(tmp_path, point)]
    codes.append(live(tmp_path, None))
    said = (tmp_path / "child.log").read_text()[-3000:]
    assert codes == ([-9, 0] if point is not None else [0]), said
    tasks = json.loads((tmp_path / "result.json").read_text())
    assert [task["status"] for task in tasks] == ["completed"] * 4, "the task, its child, its fork, and its undo"
    effects = read_effects(tmp_path / "effects.jsonl")
    logs = Logs(effects=effects, client=read_client(tmp_path / "client.jsonl"))
    assert check(tmp_path / "store.db", logs, BOUNDS) == []
    once = Counter((e.task, e.step) for e in effects if e.what == "start" and e.step in ("a", "k", "z", "undo_a"))
    assert set(once.values()) == {1}, "what must not be repeated was not"
    assert Counter(step for _, step in once) == {"a": 1, "k": 1, "z": 2, "undo_a": 1}, "z of the task and of its fork"
