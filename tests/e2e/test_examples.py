"""The agents among the examples: offline, with an approval each, and killed on the way."""

import subprocess
import sys

import pytest

from tests.e2e.processes import ROOT


@pytest.mark.parametrize(("agent", "approvals"), [("research", 1), ("coder", 2)])
def test_an_agent_of_the_examples_survives_chaos(agent: str, approvals: int) -> None:
    words = [sys.executable, "-m", "examples.agents.stage", agent, "--chaos", "--kills", "2", "--yes"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "completed" in done.stdout
    assert done.stdout.count("approved:") == approvals
    assert "2 kills" in done.stdout
