"""What is installed from a wheel, in an empty environment outside the checkout, works: with its dashboard.

The wheel is made of the source distribution, and both by the commands of the Dockerfile: they are carried out here as
they stand there, only with other folders, because no container runs inside the tests.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
import urllib.request
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
BUILT_BY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
DASHBOARD = "doors/dashboard/static/index.html"


def run(*words: str | Path, folder: Path, **env: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(words, cwd=folder, env={**clean, **env}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def recipe(word: str) -> list[str]:
    """What the Dockerfile says after this word, each time."""
    return re.findall(rf"^{word} (.*)$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.long
@pytest.mark.req("DoD.11")
@pytest.mark.timeout(900)
def test_a_wheel_in_an_empty_environment(tmp_path: Path) -> None:
    making = tmp_path / "making"
    run(sys.executable, "-m", "pip", "install", "-q", "--target", making, *BUILT_BY, folder=tmp_path)
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, folder=ROOT, PYTHONPATH=str(making))
    (source,) = tmp_path.glob("everstep-*.tar.gz")
    with tarfile.open(source) as packed:
        assert any(name.endswith(f"src/everstep/{DASHBOARD}") for name in packed.getnames())
    (tmp_path / "unpacked").mkdir()
    run("tar", "-xf", source, "-C", tmp_path / "unpacked", folder=tmp_path)
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    run(sys.executable, "-m", "venv", tmp_path / "env", folder=tmp_path)
    there = tmp_path / "env/bin"
    path = f"{there}{os.pathsep}{os.environ['PATH']}"
    make, install, _ = (
        step.replace("/wheels", str(tmp_path / "wheels")).replace("/src", str(unpacked)) for step in recipe("RUN")
    )
    run("sh", "-c", make, folder=tmp_path, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (wheel,) = (tmp_path / "wheels").glob("everstep-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "everstep/py.typed" in names
    assert f"everstep/{DASHBOARD}" in names
    run("sh", "-c", install, folder=tmp_path, PATH=path)
    where = run(there / "python", "-c", "import everstep; print(everstep.__file__)", folder=tmp_path)
    assert where.startswith(str(tmp_path))
    home = tmp_path / "home"
    home.mkdir()
    run(there / "everstep", "init", "mine", folder=home, HOME=str(home))
    assert "Hello, Ana!" in run(there / "everstep", "run", "hello", "-i", "name=Ana", folder=home / "mine")
    assert '"ok":true' in run(there / "everstep", "demo", "--fast", "--json", folder=home)
    serves_as_the_image_does(home / "mine", path)


def serves_as_the_image_does(project: Path, path: str) -> None:
    """The image's command, and its question whether it is well; only at another port."""
    (command,), (healthy,) = recipe("CMD"), recipe("HEALTHCHECK CMD")
    words = [*json.loads(command), "--port", "0", "--json"]
    env = {**os.environ, "PATH": path, "PYTHONPATH": ""}
    with subprocess.Popen(words, cwd=project, env=env, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            port = urlsplit(json.loads(serving.stdout.readline())["url"]).port
            run(*shlex.split(healthy.replace("7717", str(port))), folder=project, PATH=path)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as page:
                assert b'<div id="app"' in page.read()
        finally:
            serving.terminate()


def test_the_fleet_of_the_compose_file_is_made_of_commands_that_there_are() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert {name for name, one in services.items() if one.get("build") == "."} == {"migrate", "server", "worker"}
    for one in services.values():
        if "command" in one:
            run(sys.executable, "-m", *one["command"], "--help", folder=ROOT)
