"""Tools that wait for a word from the test: nothing here depends on how long anything takes."""

import asyncio
from pathlib import Path
from typing import Any, TypedDict

import psutil

from everstep import Ctx, Misconfigured, Transient, tool

GATES = Path(__file__).parent / "gates"


class Page(TypedDict):
    """What was read."""

    url: str
    title: str
    words: int


class Sent(TypedDict):
    """What went out."""

    message_id: str
    to: str


async def opened(name: str) -> None:
    """Until the test opens this gate."""
    while not (GATES / name).exists():  # noqa: ASYNC110 -- the test is another process
        await asyncio.sleep(0.02)


@tool.pure("stage.search", title="Search")
async def search(query: str, limit: int = 6) -> dict[str, object]:
    """Find pages about something."""
    await asyncio.sleep(0.05)
    return {"query": query, "results": [{"url": f"https://example.test/{n}", "rank": n} for n in range(limit)]}


@tool.pure("stage.read", title="Read a page", timeout="10m")
async def read(url: str, gate: str = "", *, ctx: Ctx) -> Page:
    """Read one page; some of them cannot be read."""
    ctx.log.info("reading", url=url)
    await asyncio.sleep(0.03)
    if url.endswith("/3"):
        raise Misconfigured(f"{url} is gone", code="not_found", what_to_do="leave it out")
    if gate:
        ctx.progress(0.4, "waiting for the gate")
        await opened(gate)
    return {"url": url, "title": f"Page {url.rpartition('/')[2]}", "words": 812}


@tool.pure("stage.write", title="Write")
async def write(about: str, pages: list[object] | None = None) -> dict[str, str]:
    """Sum it up."""
    await asyncio.sleep(0.05)
    return {"markdown": f"# {about}\n\nStorage is getting cheaper, and that changes what is worth building.\n" * 3}


@tool("stage.send", title="Send a message")
async def send(to: str, subject: str, text: str) -> Sent:
    """Send it; it cannot be taken back."""
    (GATES / "sent.txt").open("a").write(f"{to}\t{subject}\n")
    return {"message_id": "m-1", "to": to}


@tool.pure("stage.hold", title="Wait for a word", timeout="10m")
async def hold(gate: str, *, ctx: Ctx) -> str:
    """Go on when the gate is open."""
    ctx.log.info("waiting for the gate", gate=gate)
    await opened(gate)
    ctx.log.info("the gate is open", gate=gate)
    return gate


@tool.pure("stage.echo", title="Echo")
async def echo(value: object = None) -> object:
    """Give back what came."""
    return value


@tool.pure("stage.fail", title="Fail")
async def fail(message: str = "the other side answered 502", gate: str = "") -> str:
    """Fail, unless the gate is open."""
    if gate and (GATES / gate).exists():
        return "at last"
    raise Transient(message, code="bad_gateway")


@tool.pure("stage.item", title="One of many")
async def item(n: int) -> int:
    """One item."""
    return n * 2


@tool.pure("stage.paced", title="One of many, at its pace")
async def paced(n: int, seconds: float = 0.5) -> int:
    """One item that takes so long."""
    await asyncio.sleep(seconds)
    return n


@tool.pure("stage.chatter", title="Talk a lot", timeout="10m")
async def chatter(lines: int, *, ctx: Ctx) -> int:
    """So many lines of log."""
    for n in range(lines):
        ctx.log.info("said", n=n)
        if n % 500 == 0:
            await asyncio.sleep(0)
    return lines


@tool.pure("stage.numbers", title="Count")
async def numbers(many: int) -> list[int]:
    """So many numbers."""
    return list(range(many))


@tool.pure("stage.big", title="A large output")
async def big(megabytes: int = 1) -> dict[str, object]:
    """So much text."""
    line = "0123456789abcdef" * 64
    return {"lines": [f"{n:08d} {line}" for n in range(megabytes * 1000)]}


class Size(TypedDict):
    """Both are needed."""

    width: int
    height: int


@tool.pure("stage.area", title="Measure")
async def area(size: Size) -> int:
    """Width times height."""
    return size["width"] * size["height"]


@tool("stage.post", title="Post it")
async def post(text: str, gate: str) -> Sent:
    """Reach the world, and say so only when the gate is open."""
    (GATES / "posted.txt").open("a").write(f"{text}\n")
    await opened(gate)
    return {"message_id": "m-2", "to": text}


_disk_usage = psutil.disk_usage


def _measured(path: str) -> Any:
    """The disk as it is, or almost full if the test says so."""
    real = _disk_usage(path)
    return real._replace(free=1024) if (GATES / "full-disk").exists() else real


psutil.disk_usage = _measured
