"""Pauses, answers, cancels, signals, tokens and deletion, killed at each of their points: what was told stands."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from everstep.torture.points import BY_ERRANDS

ROOT = Path(__file__).parents[2]
HALVES = (BY_ERRANDS[::2], BY_ERRANDS[1::2])


@pytest.mark.req("C.2", "TR.1")
@pytest.mark.parametrize("points", HALVES, ids=["before", "after"])
def test_killed_at(points: tuple[str, ...]) -> None:
    """One process forks every life, so a point costs a fraction of a second."""
    said = subprocess.run(
        [sys.executable, "-m", "tests.fault.errands", *points],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=300,
        check=False,
    )
    lines = [json.loads(line) for line in said.stdout.splitlines()]
    assert [line["point"] for line in lines] == [*points]
    assert [line for line in lines if line["verdict"] != "passed"] == []
