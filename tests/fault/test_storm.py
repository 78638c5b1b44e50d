"""A storm of pauses, approvals, retries, patches and cancels, and SIGKILL in the middle of it, a hundred times."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from everstep.torture.checker import check
from everstep.torture.history import Logs, read_client, read_effects
from everstep.torture.points import STORM
from everstep.torture.trial import BOUNDS
from tests.fault.mutants import SOURCE

KILLS = 25
"""Of each storm."""
STORMS = int(os.environ.get("EVERSTEP_TEST_STORMS", "1"))
"""`make torture` has four of them."""
STARTUP_S = 0.7
LIFE_S = 0.8
PATIENCE_S = 60.0


def start(folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "child.log").open("ab") as said:
        return subprocess.Popen(
            [sys.executable, "-m", STORM, str(folder)],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdout=said,
            stderr=said,
        )


def blowing(folder: Path, process: "subprocess.Popen[bytes]") -> None:
    """Wait until this life has begun to act: how long a start takes is not what is asked here."""
    lives = folder / "lives"
    before = lives.stat().st_size if lives.exists() else 0
    latest = time.monotonic() + PATIENCE_S
    while process.poll() is None and (not lives.exists() or lives.stat().st_size == before):
        assert time.monotonic() < latest, (folder / "child.log").read_text()[-3000:]
        time.sleep(0.005)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(STORMS))
def test_killed_in_a_storm(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    (tmp_path / "seed").write_text(str(seed))
    for _ in range(KILLS):
        process = start(tmp_path)
        in_startup = chance.random() < 0.25
        if not in_startup:
            blowing(tmp_path, process)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait((STARTUP_S if in_startup else LIFE_S) * chance.random())
        process.kill()
        process.wait()
    (tmp_path / "calm").touch()
    last = start(tmp_path)
    try:
        assert last.wait(PATIENCE_S) == 0, (tmp_path / "child.log").read_text()[-3000:]
    finally:
        last.kill()
        last.wait()
    ends = json.loads((tmp_path / "result.json").read_text())
    assert set(ends) <= {"completed", "failed", "cancelled"}
    logs = Logs(effects=read_effects(tmp_path / "effects.jsonl"), client=read_client(tmp_path / "client.jsonl"))
    assert check(tmp_path / "store.db", logs, BOUNDS) == []
    promised = {said.op for said in logs.client if said.what == "ok"}
    assert {"pause", "answer", "retry", "patch"} <= promised, "every kind of command has got through"
