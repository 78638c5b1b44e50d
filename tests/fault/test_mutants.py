"""Every broken engine is found; the same scenes on the real one are not.

`make torture` plays all of them; here six a day, so that a week has seen them all.
"""

import os
import time
from pathlib import Path

import pytest

from tests.fault.broken_engines import BROKEN_ENGINES
from tests.fault.broken_stores import BROKEN_STORES
from tests.fault.mutants import SCENES, SOURCE, Mutant

MUTANTS = (*BROKEN_ENGINES, *BROKEN_STORES)
AT_ONCE = int(os.environ.get("EVERSTEP_TEST_MUTANTS", "6"))
DAY = int(time.time() // 86400)
TODAY = [MUTANTS[(DAY * AT_ONCE + number) % len(MUTANTS)] for number in range(min(AT_ONCE, len(MUTANTS)))]


@pytest.mark.parametrize("scene", SCENES)
def test_the_real_engine_passes_every_scene(tmp_path: Path, scene: str) -> None:
    assert SCENES[scene].found(tmp_path, SOURCE) == set()


@pytest.mark.parametrize("mutant", TODAY, ids=lambda mutant: mutant.name)
def test_a_broken_engine_is_found(tmp_path: Path, mutant: Mutant) -> None:
    assert mutant.check in mutant.caught(tmp_path)


def test_there_are_enough_and_all_fit_the_code() -> None:
    """At least 25, each with a name of its own, each of texts that stand in the product exactly once."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25
    for mutant in MUTANTS:
        for edit in mutant.edits:
            text = (SOURCE / "everstep" / edit.file).read_text(encoding="utf-8")
            assert text.count(edit.old) == 1, f"{mutant.name}: {edit.file} has {text.count(edit.old)} times: {edit.old}"
