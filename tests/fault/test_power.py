"""The power goes out at any moment: nothing that anybody was told is lost, and no file is damaged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATES = 60
"""`make torture` builds ten thousand."""


@pytest.mark.long
@pytest.mark.req("C.2")
@pytest.mark.parametrize("durability", ["power", "process"])
def test_every_state_that_a_disk_can_be_left_in_is_sound(durability: str) -> None:
    """Dropped, reordered and torn writes. `power`: all that was told is there; `process`: only an end is missing."""
    words = ("--states", str(STATES), "--durability", durability)
    said = subprocess.run(
        [sys.executable, "-m", "tests.fault.power", *words], cwd=ROOT, stdout=subprocess.PIPE, timeout=300, check=False
    )
    told = json.loads(said.stdout)
    assert told["violations"] == []
    assert told["states"] == STATES
    assert told["carried_on"] >= STATES // 20
    assert told["syncs"] > 10
