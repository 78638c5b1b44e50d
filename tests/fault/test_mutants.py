"""Every broken engine is found; the same scenes on the real one are not."""

from pathlib import Path

import pytest

from tests.fault.mutants import MUTANTS, SCENES, Mutant


@pytest.mark.parametrize("scene", SCENES)
def test_the_real_engine_passes_every_scene(tmp_path: Path, scene: str) -> None:
    report = SCENES[scene].play(tmp_path)
    assert report.violations == []
    assert report.kills == len(SCENES[scene].failpoints)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_engine_is_found(tmp_path: Path, mutant: Mutant) -> None:
    (tmp_path / "trial").mkdir()
    report = mutant.scene.play(tmp_path / "trial", mutant.make(tmp_path))
    assert mutant.check in {violation.check for violation in report.violations}, report.violations
