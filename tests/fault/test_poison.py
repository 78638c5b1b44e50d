"""A task that kills its engine, again and again, takes nobody with it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from everstep.torture.checker import Bounds, check

PROGRAM = Path(__file__).with_name("poison.py")


@pytest.mark.req("X.6")
@pytest.mark.parametrize("poisons", [1, 3])
def test_a_poison_takes_no_innocents_with_it(tmp_path: Path, poisons: int) -> None:
    """No ordinary task gets through a call while a poison runs beside it, so all look equally guilty at first."""
    said = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), str(poisons), "50"], capture_output=True, check=True, timeout=300
    )
    told = json.loads(said.stdout)
    ends = {task["key"]: (task["status"], task["error"]) for task in told["tasks"]}
    assert {ends.pop(f"poison-{number}") for number in range(poisons)} == {("failed", "recovery_exhausted")}
    assert set(ends.values()) == {("completed", None)}
    assert len(ends) == 50
    assert check(tmp_path / "store.db", bounds=Bounds(healed=True)) == []
