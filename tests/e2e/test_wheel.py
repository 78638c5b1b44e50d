"""What is installed from a wheel, in an empty environment outside the checkout, works: with its dashboard."""

import json
import os
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str | Path, folder: Path, **env: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=folder, env={**clean, **env}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


@pytest.mark.req("DoD.11")
@pytest.mark.timeout(600)
def test_a_wheel_in_an_empty_environment(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT, folder=tmp_path)
    (wheel,) = tmp_path.glob("everstep-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "everstep/py.typed" in names
    assert "everstep/doors/dashboard/static/index.html" in names
    run(sys.executable, "-m", "venv", tmp_path / "env", folder=tmp_path)
    there = tmp_path / "env/bin"
    run(there / "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel, folder=tmp_path)
    where = run(there / "python", "-c", "import everstep; print(everstep.__file__)", folder=tmp_path)
    assert where.startswith(str(tmp_path))
    home = tmp_path / "home"
    home.mkdir()
    run(there / "everstep", "init", "mine", folder=home, HOME=str(home))
    assert "Hello, Ana!" in run(there / "everstep", "run", "hello", "-i", "name=Ana", folder=home / "mine")
    assert "PASS" in run(there / "everstep", "demo", "--fast", "--json", folder=home).replace('"ok":true', "PASS")
    with subprocess.Popen(
        [there / "everstep", "serve", "--port", "0", "--json"], cwd=home / "mine", stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout is not None
        url = json.loads(serving.stdout.readline())["url"]
        with urllib.request.urlopen(url) as page:
            assert b'<div id="app"' in page.read()
        serving.terminate()
