"""A coding agent: it runs the tests, shows a model what fails, and asks before it changes a file."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from everstep import Ctx, durable, tool

MOVE = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "why": {"type": "string"}},
    "required": ["path", "text", "why"],
    "additionalProperties": False,
}
ROUNDS = 5


@tool.pure("tests.run")
def run_tests(*, ctx: Ctx) -> dict[str, object]:
    """Run the tests of the folder; nothing is changed by it."""
    words = [sys.executable, "-B", "-m", "unittest", "-q", "check"]
    done = subprocess.run(words, cwd=Path(ctx.workdir), capture_output=True, text=True, check=False, timeout=60)
    return {"passed": done.returncode == 0, "output": done.stderr[-2000:]}


@durable("coder", version="1")
async def coder(ctx: Any, goal: str) -> dict[str, object]:  # noqa: ANN401 -- everstep gives it
    """Change one file after the other until the tests pass; every change is shown first."""
    for done in range(ROUNDS):
        report = await ctx.call(run_tests)
        if report["passed"]:
            return {"passed": True, "changes": done}
        source = await ctx.call("file.read", {"path": "slug.py"})
        asked = f"{goal}\n\nslug.py:\n{source['text']}\n\nThe tests say:\n{_problem(report['output'])}"
        move = (await ctx.call("llm.json", {"prompt": asked, "schema": MOVE}))["value"]
        change = {"path": move["path"], "text": move["text"]}
        await ctx.call("file.write", change, approve={"title": f"{move['why']} Change {move['path']}?"})
    return {"passed": False, "changes": ROUNDS}


def _problem(output: str) -> str:
    """What failed, without times and paths: those differ from one machine to the next."""
    return "\n".join(line for line in output.splitlines() if line.startswith(("AssertionError", "FAIL", "NameError")))
