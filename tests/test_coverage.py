"""`make coverage` counts what processes of their own run, prints lines and branches, and fails below its floor."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HALF = "import sys\nif len(sys.argv) > 1:\n    print('more')\nprint('done')\n"
WHOLE = "for last in (False, True):\n    if last:\n        print('done')\n"


@pytest.mark.req("DoD.9")
@pytest.mark.parametrize(
    ("program", "said", "code"),
    [(HALF, "lines 75.00 %, branches 50.00 %", 1), (WHOLE, "lines 100.00 %, branches 100.00 %", 0)],
    ids=["below", "above"],
)
def test_the_floor_holds(tmp_path: Path, program: str, said: str, code: int) -> None:
    (tmp_path / "it.py").write_text(program)
    (tmp_path / ".coveragerc").write_text("[run]\nbranch = true\n")
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["coverage", "run", "it.py"], cwd=tmp_path, env=environ, check=True, capture_output=True)
    script = [sys.executable, str(ROOT / "scripts/line_coverage.py")]
    done = subprocess.run(script, cwd=tmp_path, env=environ, check=False, capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == (said, code)


@pytest.mark.req("DoD.9")
def test_engines_of_their_own_count_and_so_do_branches() -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["coverage"]["run"]
    assert (said["branch"], said["patch"], said["source_pkgs"]) == (True, ["subprocess"], ["everstep"])
