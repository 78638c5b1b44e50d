"""Servers that others wrote, with and without `everstep mcp proxy` before them: the same answers.

    python tests/mcp_conformance/proxied.py

`server-everything` and `server-filesystem` from npm, asked by the MCP Inspector and by the official Python client; and
a client that is killed in the middle of a slow call, and comes back.
"""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.mcp_conformance import run as suite  # noqa: E402
from tests.mcp_conformance.run import CACHE, NODE, environment, npm_install, program  # noqa: E402 -- a program, not a package

PACKAGES = (
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
)
HOME = CACHE / "node_modules" / "@modelcontextprotocol"
EVERYTHING = [NODE, str(HOME / "server-everything" / "dist" / "index.js"), "stdio"]
FILES = [NODE, str(HOME / "server-filesystem" / "dist" / "index.js")]
PROXY = [sys.executable, "-m", "everstep", "mcp", "proxy", "--name", "behind", "--"]
ASKED = (
    ("--method", "tools/list"),
    ("--method", "prompts/list"),
    ("--method", "resources/list"),
    ("--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hello"),
    ("--method", "tools/call", "--tool-name", "get-sum", "--tool-arg", "a=2", "--tool-arg", "b=40"),
    ("--method", "tools/call", "--tool-name", "get-structured-content", "--tool-arg", "location=Chicago"),
)
SLOW = ("trigger-long-running-operation", {"duration": 4, "steps": 2})
CALLER = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.mcp_conformance.proxied import call_slow
asyncio.run(call_slow(Path(sys.argv[2])))
"""
NOT_PASSED_ON = {"tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums"}
"""What a server asks of the person behind a client; the proxy asks only for approvals of its own."""
PATIENT = ("--connect-timeout", "100000")
OF_THE_CLIENT = {"get-roots-list"}
"""Listed only to clients that offer folders, which a proxy does not."""
ALLOWED = 'policy.approve = { "mcp.behind.write_file" = false, "mcp.behind.edit_file" = false }\n'
KEY = {"everstep/idempotency_key": "the-slow-one"}


def inspected(folder: Path, server: list[str], words: tuple[str, ...]) -> Any:
    """What the Inspector prints."""
    command = [*program("mcp-inspector"), "--cli", "--protocol-era", "legacy", *PATIENT, *words, "--"]
    done = subprocess.run(
        [*command, *server], cwd=folder, env=environment(), capture_output=True, timeout=120, check=False
    )
    assert done.stdout, done.stderr[-2000:]
    said = json.loads(done.stdout)
    said.pop("_meta", None)
    if "content" in said:
        said.setdefault("isError", False)  # which is what leaving it out means
    return said


def same_for_the_inspector(folder: Path) -> None:
    for words in ASKED:
        without, behind = inspected(folder, EVERYTHING, words), inspected(folder, [*PROXY, *EVERYTHING], words)
        if "tools" in without:
            without["tools"] = [tool for tool in without["tools"] if tool["name"] not in OF_THE_CLIENT]
        assert behind == without, (words, behind, without)


@asynccontextmanager
async def client(folder: Path, server: list[str]) -> AsyncIterator[Any]:
    from mcp.client.session import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    said = StdioServerParameters(command=server[0], args=server[1:], cwd=folder, env=environment())
    with (folder / "stderr").open("a") as log:
        async with stdio_client(said, errlog=log) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            yield session


async def files(folder: Path, server: list[str]) -> list[Any]:
    """A story in a folder, as its client sees it."""
    async with client(folder, [*server, *FILES, str(folder)]) as session:
        told = [sorted(tool.name for tool in (await session.list_tools()).tools)]
        for name, arguments in (
            ("write_file", {"path": str(folder / "a.txt"), "content": "solar"}),
            ("read_text_file", {"path": str(folder / "a.txt")}),
            ("edit_file", {"path": str(folder / "a.txt"), "edits": [{"oldText": "solar", "newText": "wind"}]}),
            ("get_file_info", {"path": str(folder / "missing.txt")}),
        ):
            result = await session.call_tool(name, arguments)
            text = result.content[0].text.replace(str(folder), "FOLDER")
            told.append([name, bool(result.is_error), text.partition("created:")[0]])
    return [*told, (folder / "a.txt").read_text()]


def same_for_the_python_client(folder: Path) -> None:
    told = []
    for name, server in (("direct", []), ("behind", PROXY)):
        (folder / name).mkdir()
        (folder / name / "everstep.toml").write_text(ALLOWED if server else "")
        told.append(asyncio.run(files(folder / name, server)))
    assert told[0] == told[1], told


async def call_slow(folder: Path) -> Any:
    async with client(folder, [*PROXY, *EVERYTHING]) as session:
        return await session.call_tool(*SLOW, meta=KEY)


def killed_and_back(folder: Path) -> None:
    """The client dies in the middle of a slow call: reopened, the result is there, and the call was made once."""
    first = subprocess.Popen([sys.executable, "-c", CALLER, str(ROOT), str(folder)], env=environment())
    store = folder / ".everstep" / "proxy" / "behind.db"
    while "attempt.started" not in types(store):
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    result = asyncio.run(call_slow(folder))
    assert "completed" in result.content[0].text, result
    assert types(store).count("attempt.started") == 1, types(store)


def same_for_the_suite(folder: Path) -> None:
    """The fixture of the conformance suite, asked directly and through the proxy: check by check the same."""
    direct, behind = suite.free_port(), suite.free_port()
    log, here = str(folder / "calls.log"), Path(__file__).parent
    url = f"http://127.0.0.1:{direct}/mcp"
    programs = [
        [str(here / "fixture.py"), str(direct), log],
        [str(here / "proxy_host.py"), str(behind), url, str(folder)],
    ]
    suite.install()
    running = []
    try:
        for words, port in zip(programs, (direct, behind), strict=True):
            running.append(subprocess.Popen([sys.executable, *words], env=environment(), cwd=folder))
            suite.wait_for(port)
        found = [
            suite.run(f"http://127.0.0.1:{port}/mcp", folder / str(port), "--requirements", "2025-11-25")
            for port in (direct, behind)
        ]
    finally:
        for one in running:
            one.terminate()
            one.wait()
    without, beside = ({name: one[name] for name in one if name not in NOT_PASSED_ON} for one in found)
    other = {name: (without.get(name), beside.get(name)) for name in without if without[name] != beside.get(name)}
    assert not other, other
    print("  checks through the proxy: {} passed, {} failed".format(*suite.tally(beside)))


def types(store: Path) -> list[str]:
    """Of the events that are recorded."""
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as db:
            return [kind for (kind,) in db.execute("SELECT type FROM events")]
    except sqlite3.Error:
        return []


def main() -> int:
    CACHE.mkdir(exist_ok=True)
    if not (HOME / "server-filesystem").is_dir():
        npm_install(*PACKAGES)
    stories: dict[str, Callable[[Path], None]] = {
        "server-everything, Inspector": same_for_the_inspector,
        "server-filesystem, Python client": same_for_the_python_client,
        "server-everything, client killed in a slow call": killed_and_back,
        "the conformance suite": same_for_the_suite,
    }
    failed = 0
    for name, story in stories.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                story(Path(folder).resolve())
            except (AssertionError, ValueError, KeyError, OSError) as error:
                failed += 1
                print(f"{name}: {error!s:.2000}", flush=True)
            else:
                print(f"{name}: the same", flush=True)
    print(f"{len(stories) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
