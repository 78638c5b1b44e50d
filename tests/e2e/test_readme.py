"""The README's quickstart, run as it is written."""

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

from everstep import Plan

ROOT = Path(__file__).resolve().parents[2]


def blocks(language: str) -> list[str]:
    """The code blocks of one language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)


def run(words: list[str], folder: Path) -> str:
    """One command, which must succeed."""
    bin_folder = Path(sys.executable).parent
    path = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(words, cwd=folder, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def test_the_commands_of_the_quickstart(tmp_path: Path) -> None:
    (plan,) = blocks("yaml")
    (tmp_path / "hello.plan.yaml").write_text(plan, encoding="utf-8")
    _, commands = blocks("console")
    said = [run(line.split(), tmp_path) for line in commands.splitlines()]
    assert "file: hello.txt" in said[1]
    assert (tmp_path / "hello.txt").read_text(encoding="utf-8") == "Hello Ana!"
    assert "hello" in said[2]


def test_the_same_plan_in_ten_lines_of_python(tmp_path: Path) -> None:
    (plan,), (program, _) = blocks("yaml"), blocks("python")
    assert len([line for line in program.splitlines() if line.strip()]) <= 10
    (tmp_path / "hello.plan.yaml").write_text(plan, encoding="utf-8")
    (tmp_path / "hello.py").write_text(program, encoding="utf-8")
    assert run([sys.executable, "hello.py"], tmp_path) == "{'bytes': 10, 'file': 'hello.txt'}\n"
    assert (tmp_path / "hello.txt").read_text(encoding="utf-8") == "Hello Ana!"
    written = runpy.run_path(str(tmp_path / "hello.py"))["plan"]
    assert written.digest == Plan.load(tmp_path / "hello.plan.yaml").digest


def test_the_agent_of_ten_lines(tmp_path: Path) -> None:
    """It stops at its question; answered, the same program comes to its end, and nothing is done twice."""
    _, program = blocks("python")
    assert len([line for line in program.splitlines() if line.strip()]) <= 10
    (tmp_path / "brief.py").write_text(program, encoding="utf-8")
    (tmp_path / "notes.md").write_text("A durable task survives a crash. It goes on where it was.", encoding="utf-8")
    assert run([sys.executable, "brief.py"], tmp_path) == "None\n"
    pause = json.loads(run(["everstep", "inbox", "--json"], tmp_path))["items"][0]
    assert pause["title"] == "Write brief.txt?"
    run(["everstep", "approve", pause["id"], "--detach"], tmp_path)
    assert "'path': 'brief.txt'" in run([sys.executable, "brief.py"], tmp_path)
    assert "durable task" in (tmp_path / "brief.txt").read_text(encoding="utf-8")
    tasks = json.loads(run(["everstep", "ls", "--json"], tmp_path))["items"]
    assert [task["status"] for task in tasks] == ["completed"]
