"""The tools of this scenario: a library that is slow, and a notice board that remembers.

Every call leaves a line in `world.jsonl`, written and flushed where the effect arrives, not where it is recorded: so
what was made in the world can be held against what the journal says.
"""

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Final, TypedDict

from everstep import Ctx, tool
from everstep.demos.folder import WORLD, DemoFolder, happened

LIBRARY: Final = Path(__file__).parent / "library"
_WORD: Final = re.compile(r"[a-z]{3,}")


class Hit(TypedDict):
    """One document that fits."""

    name: str
    title: str
    score: int


class Hits(TypedDict):
    """What a search found, best first."""

    results: list[Hit]


class Document(TypedDict):
    """One document."""

    title: str
    text: str
    words: int


class Notice(TypedDict):
    """What was put on the board."""

    number: int
    line: str


@tool.pure("library.search", title="Search the library")
async def search(query: str, limit: int = 5, pace: float = 1.0, *, ctx: Ctx) -> Hits:
    """Find the documents that use the words of the query most."""
    tell(ctx)
    await think(0.5 * pace, ctx)
    wanted = set(_WORD.findall(query.lower()))
    hits: list[Hit] = []
    for path in sorted(LIBRARY.glob("*.txt")):
        words = Counter(_WORD.findall(path.read_text(encoding="utf-8").lower()))
        score = sum(words[word] for word in wanted)
        hits.append({"name": path.stem, "title": title_of(path), "score": score})
    hits.sort(key=lambda hit: -hit["score"])
    return {"results": [hit for hit in hits if hit["score"]][:limit]}


@tool.pure("library.read", title="Read a document")
async def read(name: str, pace: float = 1.0, *, ctx: Ctx) -> Document:
    """Read one document of the library."""
    tell(ctx)
    await think(0.7 * pace, ctx)
    path = LIBRARY / f"{Path(name).name}.txt"
    text = path.read_text(encoding="utf-8").partition("\n")[2].strip()
    return {"title": title_of(path), "text": re.sub(r"\s*\n\s*", " ", text), "words": len(text.split())}


@tool("board.post", title="Put a notice on the board", timeout="30s")
async def post(text: str, pace: float = 1.0, *, ctx: Ctx) -> Notice:
    """Put one line on the notice board. It cannot be taken back, and nobody wants to read it twice."""
    await think(0.3 * pace, ctx)
    number = DemoFolder(ctx.workdir).made()[ctx.step_id] + 1
    notice: Notice = {"number": number, "line": f"{number}. {text}"}
    tell(ctx, notice)
    await think(0.4 * pace, ctx)
    return notice


async def think(length_s: float, ctx: Ctx) -> None:
    """Take a while, and say how far it has come."""
    for part in range(1, 11):
        await asyncio.sleep(length_s / 10)
        ctx.progress(part / 10)


def title_of(path: Path) -> str:
    """The first line of a document."""
    return path.read_text(encoding="utf-8").partition("\n")[0]


def tell(ctx: Ctx, output: object = None) -> None:
    """The call has reached the world."""
    happened(ctx.workdir / WORLD, step=ctx.step_id, key=ctx.idempotency_key, output=output)
