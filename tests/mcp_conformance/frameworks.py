"""Tools of the real packages as steps: LangChain, Pydantic AI, OpenAI Agents, in an environment of their own.

python tests/mcp_conformance/frameworks.py
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.mcp_conformance.run import CACHE  # noqa: E402 -- a program, not a package

PACKAGES = ("langchain-core>=1.7,<2", "pydantic-ai-slim>=2.66,<3", "openai-agents>=0.24,<0.25")
STORY = """
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from agents import function_tool
from langchain_core.tools import tool as langchain_tool
from pydantic_ai import FunctionToolset, Tool

from everstep import Engine, Plan
from everstep.tools import from_langchain, from_openai, from_pydantic_ai, to_openai


@langchain_tool
def multiply(a: int, b: int = 2) -> int:
    '''Multiply two numbers.'''
    return a * b


@function_tool
async def shout(text: str, marks: int = 1) -> str:
    '''Say it louder.'''
    return text.upper() + "!" * marks


def convert(amount: float, currency: str = "EUR") -> str:
    '''Convert an amount.

    Args:
        amount: How much.
        currency: Into what.
    '''
    return f"{amount:.2f} {currency}"


def halve(n: int) -> float:
    '''Half of it.'''
    return n / 2


async def main(folder: Path) -> None:
    toolset: Any = FunctionToolset([Tool(halve, takes_ctx=False)])
    tools = [
        from_langchain(multiply, effect="pure"),
        from_openai(shout),
        *from_pydantic_ai(Tool(convert, takes_ctx=False)),
        *from_pydantic_ai(toolset),
    ]
    plan = Plan("mixed")
    six = plan.step("six", "multiply", {"a": 3})
    loud = plan.step("loud", "shout", {"text": "solar", "marks": 2})
    money = plan.step("money", "convert", {"amount": 12.5, "currency": "CHF"})
    half = plan.step("half", "halve", {"n": six})
    plan.output(six=six, loud=loud, money=money, half=half)
    async with Engine(folder / "work.db", tools=tools) as engine:
        result = await engine.run(plan)
        wrong = Plan("wrong")
        wrong.step("bad", "convert", {"amount": "much"})
        try:
            await engine.start(wrong)
            refused = False
        except Exception:
            refused = True
    schemas = {one["function"]["name"]: one["function"]["parameters"] for one in to_openai(tools)}
    told = {"status": result.status, "outputs": result.outputs, "refused": refused, "schemas": schemas}
    print(json.dumps(told))


asyncio.run(main(Path(sys.argv[1])))
"""
OUTPUTS = {"six": 6, "loud": "SOLAR!!", "money": "12.50 CHF", "half": 3}
REQUIRED = {"multiply": ["a"], "shout": ["text", "marks"], "convert": ["amount"], "halve": ["n"]}


def python() -> Path:
    """Where they are installed; ours comes last, so that its own versions hold."""
    home = CACHE / "frameworks"
    found = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True)
        subprocess.run([found, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        without_pages = {**os.environ, "EVERSTEP_NO_DASHBOARD": "1"}
        subprocess.run([found, "-m", "pip", "install", "-q", "-e", str(ROOT)], check=True, env=without_pages)
        (home / "ready").touch()
    return found


def main() -> int:
    CACHE.mkdir(exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        words = [str(python()), "-c", STORY, folder]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["status"], said["outputs"]) == ("completed", OUTPUTS), said
    assert said["refused"], "arguments that do not fit were not refused"
    assert {name: schema["required"] for name, schema in said["schemas"].items()} == REQUIRED, said["schemas"]
    print("LangChain, Pydantic AI and OpenAI Agents: their tools are steps, with their own schemas")
    return 0


if __name__ == "__main__":
    sys.exit(main())
