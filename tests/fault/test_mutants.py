"""Every broken engine is found; the same scenes on the real one are not."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fault.mutants import CLEAN, MUTANTS, SCENES, SOURCE, Edit, Mutant


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


PROBES = """
import asyncio
from everstep.adapters.stores.memory import MemoryStore
from everstep.testing.conformance.store_breakers import one_probe_at_a_time
class Rig:
    store = MemoryStore()
    async def open(self, worker):
        await self.store.open(worker)
        return self.store
asyncio.run(one_probe_at_a_time(Rig()))
"""
TWO_PROBES = Mutant(
    "a half-open breaker lets two through",
    (
        Edit(
            "domain/breaker.py",
            "BreakerState.HALF_OPEN if breaker.permit is not None and holder_lives",
            "BreakerState.HALF_OPEN if breaker.permit is not None and not holder_lives",
        ),
    ),
    CLEAN,
    "exactly one probe",
)


def probes(source: Path) -> subprocess.CompletedProcess[str]:
    """The store suite's story of one probe, played on this source."""
    return subprocess.run(
        [sys.executable, "-c", PROBES], env={"PYTHONPATH": str(source)}, capture_output=True, text=True, check=False
    )


def test_two_probes_at_once_are_found(tmp_path: Path) -> None:
    assert probes(SOURCE).returncode == 0
    assert TWO_PROBES.check in probes(TWO_PROBES.make(tmp_path)).stderr
