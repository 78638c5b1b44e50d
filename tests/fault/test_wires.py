"""The wire to PostgreSQL goes wrong in every way, and everybody comes back (F22)."""

from pathlib import Path

import pytest

from tests.fault import wires

TEN = 10


@pytest.mark.long
@pytest.mark.req("WF-13", "WF-14")
async def test_f22_a_wire_that_is_late_stands_still_or_is_lost(tmp_path: Path) -> None:
    said = await wires.play(tmp_path, wires.drawn(TEN, 4), seed=4)
    assert said["violations"] == []
    assert said["wires"] >= TEN - 1, "without root there is no other host"
