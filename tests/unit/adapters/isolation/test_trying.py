"""What a machine offers is found by trying it, and `everstep doctor` says it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from everstep.adapters.isolation.group import best_roots
from everstep.adapters.isolation.trying import tried


async def test_walls_are_found_by_trying() -> None:
    held = await tried(61184 if os.getuid() == 0 else None)
    assert held is not None
    assert held["ended_whole"] is True
    assert held["kept_inside"] is (held["landlock_abi"] != 0)
    assert held["level"] == ("limited" if held["missing"] else "restricted")


@pytest.mark.req("DoD.5")
def test_doctor_says_what_holds_programs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "everstep", "--json", "doctor"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    checks = {check["name"]: check for check in json.loads(said.stdout)["checks"]}
    assert checks["programs"]["detail"].startswith(("restricted:", "limited:"))
    said_of = checks["programs"]["detail"].partition("limits: ")[2]
    roots = best_roots()
    for limit in ("memory", "CPU share", "CPU time", "processes", "wall time", "output", "files", "disk"):
        assert f"{limit} by " in said_of
    assert ("CPU share by nice only" if roots is None else f"CPU share by cgroup {roots.version}") in said_of
