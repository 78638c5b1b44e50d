"""Every example does what it says: the numbered ones end with their own assertions, the agents survive their deaths."""

import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.processes import ROOT
from tests.postgres import schema

NUMBERED = sorted((ROOT / "examples").glob("[0-9]*.py"))
LINES_MAX = 80


@pytest.fixture
def arguments(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """What an example is given: those of the fleet need a database."""
    with ExitStack() as stack:
        yield [stack.enter_context(schema())] if "postgres" in request.node.callspec.id else []


@pytest.mark.req("DoD.7")
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in NUMBERED])
def test_an_example_ends_as_it_claims(
    path: Path, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") < LINES_MAX
    assert text.splitlines()[0].rstrip('"').endswith("?"), "an example opens with its question"
    assert "assert " in text[-600:], "an example ends with what it has shown"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), *arguments])
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize(("agent", "approvals"), [("research", 1), ("coder", 2)])
def test_an_agent_of_the_examples_survives_chaos(agent: str, approvals: int) -> None:
    words = [sys.executable, "-m", "examples.agents.stage", agent, "--chaos", "--kills", "2", "--yes"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "completed" in done.stdout
    assert done.stdout.count("approved:") == approvals
    assert "2 kills" in done.stdout
