"""Nothing is tested that linter and type checker complain about: `make test` asks them first."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.req("INTG-06")
def test_the_suite_runs_after_linter_and_type_checker_and_a_warning_is_an_error() -> None:
    done = subprocess.run(["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    said = done.stdout
    asked = [said.index(words) for words in ("ruff format --check", "ruff check", "/mypy ", "lint-imports")]
    assert said.index("-m pytest") > max(asked)
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert tools["mypy"]["strict"] is True
    assert tools["pytest"]["filterwarnings"] == ["error"]


@pytest.mark.req("INTG-06")
def test_the_linter_has_nothing_to_say() -> None:
    words = [sys.executable, "-m", "ruff", "check", "--no-cache", "src", "tests"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout
