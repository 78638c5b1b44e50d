"""Requests that nobody would send, at a server with real sockets: paths, headers, bodies, WebSocket frames, JSON-RPC.

    python -m tests.fault.fuzz                    30,000 of them, into the results
    python -m tests.fault.fuzz --all 2000         so many
    python -m tests.fault.fuzz --seed 4711        one again: what is sent, and what comes back

Each has an answer within five seconds, and one that is declared: a status of the OpenAPI document, or a refusal whose
code belongs to its status. Nothing ends in `internal`. The server stands afterwards, has told of no trouble, and does a
task.
"""

import argparse
import asyncio
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import httpx2

from everstep.client import Client
from everstep.domain.errors import EverstepError
from everstep.doors.api.routes import match
from everstep.doors.errors import REFUSALS
from everstep.torture.results import Line, Results, verdict
from tests.e2e.cutting import Mortal, naps
from tests.fault.fuzz_words import Case, There, case_of
from tests.fault.watchers import standing

ALL, CHUNK, AT_ONCE = 30_000, 2_000, 8
HANG_S, UNFINISHED_S = 5.0, 0.2
"""How long an answer may take; and how long one is waited for where there need not be any."""
HEAD_BYTES_MAX, BODY_BYTES_MAX = 1 << 16, 1 << 24
NOT_A_REQUEST: Final = b"Invalid HTTP request received."
CLOSED_WELL: Final = frozenset({1000, 1001, 1002, 1003, 1005, 1007, 1008, 1009, 4400, 4404})
PROBLEM: Final = "application/problem+json"
STREAM: Final = "text/event-stream"
NO_BODY: Final = frozenset({204, 304})
OPENING: Final = {
    "jsonrpc": "2.0", "id": 0, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}},
}  # fmt: skip
TROUBLE: Final = re.compile(r"Traceback .*?\n(\w[^\n]*)", re.DOTALL)
"""A stack in the log, and what it ends with."""
RPC_INTERNAL: Final = -32603


@dataclass
class Reply:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0
    hung: bool = False

    @property
    def type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]

    @property
    def said(self) -> Any:
        body = self.body if self.type != STREAM else self.body.partition(b"data: ")[2].partition(b"\r\n")[0]
        with suppress(ValueError):
            return json.loads(body)
        return None


async def ask(case: Case, port: int) -> Reply:
    """Say it, and hear what comes back; or nothing, if the server hangs up."""
    reply, began = Reply(), time.monotonic()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=HEAD_BYTES_MAX)
    try:
        async with asyncio.timeout(HANG_S if case.whole else UNFINISHED_S):
            writer.write(case.raw)
            with suppress(OSError, asyncio.IncompleteReadError):
                await hear(reader, reply, case)
                if reply.status == 101:
                    writer.write(case.then)
                    reply.body = await to_its_close(reader, writer)
    except TimeoutError:
        reply.hung = case.whole
    finally:
        writer.transport.abort()
    reply.seconds = time.monotonic() - began
    return reply


async def to_its_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """All that is still said. Who was promised more than was sent waits for it, until it hears that nothing follows."""
    heard = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(UNFINISHED_S):
            while part := await reader.read(HEAD_BYTES_MAX):
                heard += part
            return heard
    writer.write_eof()
    return heard + await reader.read(-1)


async def hear(reader: asyncio.StreamReader, reply: Reply, case: Case) -> None:
    """A reply; of a stream, that it begins."""
    while reply.status in (0, 100):
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        reply.status = int(first.split(" ")[1])
        reply.headers = {name.lower(): said.strip() for name, _, said in (line.partition(":") for line in lines)}
    stream = reply.type == STREAM
    if reply.status == 101 or (stream and case.kind != "rpc") or case.method == "HEAD" or reply.status in NO_BODY:
        return
    if "content-length" in reply.headers:
        reply.body = await reader.readexactly(int(reply.headers["content-length"]))
    elif reply.headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            reply.body += (await reader.readexactly(size + 2))[:-2]
            if stream and b"data: {" in reply.body:
                return
    else:
        reply.body = await reader.read(BODY_BYTES_MAX)


# --- what is wrong with it ---


def judge(case: Case, reply: Reply, declared: Mapping[str, Any]) -> str | None:
    """Nothing, or what it is."""
    if reply.hung:
        return f"no answer within {HANG_S:g} s"
    if not reply.status:
        return None if not case.whole else "hung up without a word"
    if reply.status == 101:
        return of_frames(reply.body) if case.kind == "frame" else None
    if case.method == "HEAD":
        return None if reply.status < 500 else f"{reply.status}"
    if reply.status >= 400 and reply.type == PROBLEM:
        return of_refusal(reply)
    if reply.status >= 500:
        return f"{reply.status} with {reply.body[:80]!r}"
    if case.path.startswith("/mcp"):
        return of_rpc(reply)
    if reply.status >= 400:
        plain = reply.status == 400 and reply.body == NOT_A_REQUEST
        return None if plain else f"{reply.status} with {reply.body[:80]!r}"
    return of_success(case, reply, declared)


def of_refusal(reply: Reply) -> str | None:
    """A refusal has a code, and the code a status."""
    said = reply.said
    code = str(said["error"]["code"]) if isinstance(said, dict) else ""
    if code not in REFUSALS or REFUSALS[code].status != reply.status:
        return f"{reply.status} with the code {code}"
    return f"{code}: {said['detail']}" if code == "internal" else None


def of_success(case: Case, reply: Reply, declared: Mapping[str, Any]) -> str | None:
    """As the document says; what it does not know is a page."""
    try:
        route = match(case.method, case.path.partition("?")[0]).route
    except (EverstepError, ValueError):
        return None if reply.status in (200, 304, 307) else f"{reply.status} at a page"
    known = declared[route.path][route.method.lower()]["responses"]
    return None if str(reply.status) in known or reply.status == 304 else f"{reply.status} is not declared"


def of_rpc(reply: Reply) -> str | None:
    """No error of its own inside."""
    said = reply.said
    for one in said if isinstance(said, list) else [said]:
        error = one.get("error") if isinstance(one, dict) else None
        if isinstance(error, dict) and error.get("code") == RPC_INTERNAL:
            return f"internal: {error}"
    return None


def of_frames(heard: bytes) -> str | None:
    """With which code it was closed, if the server has come to say so."""
    while len(heard) >= 2:
        opcode, length, at = heard[0] & 0x0F, heard[1] & 0x7F, 2
        if length >= 126:
            at = 4 if length == 126 else 10
            length = int.from_bytes(heard[2:at])
        if opcode == 8 and length >= 2:
            code = int.from_bytes(heard[at : at + 2])
            return None if code in CLOSED_WELL else f"closed with {code}: {heard[at + 2 : at + length]!r}"
        heard = heard[at + length :]
    return None


# --- all of them ---


async def prepared(client: Client, mortal: Mortal) -> There:
    """Tasks in several states, which requests can name."""
    ended, runs, asks = (
        await client.create(plan=naps(2, 0)),
        await client.create(plan=naps(1, 3600)),
        await client.create(
            plan={"name": "ask", "steps": [{"id": "a", "tool": "ask", "with": {"question": "Which?"}}]}
        ),
    )
    async for _ in client.events(ended["id"], until_end=True):
        pass
    async with httpx2.AsyncClient() as http:
        opened = await http.post(
            f"http://127.0.0.1:{mortal.port}/mcp", json=OPENING,
            headers={"authorization": f"Bearer {mortal.token}", "accept": "application/json, text/event-stream"},
        )  # fmt: skip
    session = opened.headers["mcp-session-id"]
    return There(mortal.port, mortal.token, [ended["id"], runs["id"], asks["id"]], session)


async def still_works(client: Client) -> str:
    """How a plain task ends."""
    task = await client.create(plan=naps(2, 0))
    return [str(event["type"]) async for event in client.events(task["id"], until_end=True)][-1]


async def trial(first: int, count: int) -> Line:
    """So many, on a server of its own."""
    wrong, seen, slowest = list[str](), Counter[str](), 0.0
    seeds = iter(range(first, first + count))
    async with standing() as mortal:
        async with Client(f"http://127.0.0.1:{mortal.port}", token=mortal.token) as client:
            there = await prepared(client, mortal)
            declared = (await client.request("GET", "/v1/openapi.json"))["paths"]

            async def some() -> None:
                nonlocal slowest
                for seed in seeds:
                    case = case_of(seed, there)
                    reply = await ask(case, mortal.port)
                    slowest = max(slowest, reply.seconds)
                    seen[f"{case.kind} {reply.status // 100}xx" if reply.status else f"{case.kind} unanswered"] += 1
                    if (found := judge(case, reply, declared)) is not None:
                        wrong.append(f"seed {seed}, {case.kind} {case.method} {case.path[:60]}: {found}"[:400])

            await asyncio.gather(*(some() for _ in range(AT_ONCE)))
            if (end := await still_works(client)) != "task.completed":
                wrong.append(f"a plain task ended with {end}")
        wrong += [f"it told of {trouble[:300]}" for trouble in TROUBLE.findall(mortal.kill())]
        await mortal.start()
    return {"verdict": verdict(wrong), "trials": count, "violations": wrong[:20], "found": len(wrong), "seen": seen,
            "slowest_s": round(slowest, 2)}  # fmt: skip


def play(first: int, count: int) -> Line:
    """So many."""
    return asyncio.run(trial(first, count))


async def once(seed: int) -> int:
    """One, told."""
    async with standing() as mortal, Client(f"http://127.0.0.1:{mortal.port}", token=mortal.token) as client:
        there = await prepared(client, mortal)
        declared = (await client.request("GET", "/v1/openapi.json"))["paths"]
        case = case_of(seed, there)
        reply = await ask(case, mortal.port)
        found = judge(case, reply, declared)
        print(f"{case.raw[:3_000]!r}\n{reply.status} {reply.headers}\n{reply.body[:2_000]!r}\n{found or 'passed'}")
    return int(found is not None)


def main() -> int:
    """One, or all of them, some thousand on each server."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--all", type=int, default=ALL)
    given = parser.parse_args()
    if given.seed is not None:
        return asyncio.run(once(given.seed))
    results, bad, seen = Results.of_this_commit(), 0, Counter[str]()
    for first in range(1, given.all, CHUNK):
        line = results.once("F64", first, partial(play, first, CHUNK))
        bad += line["verdict"] != "passed"
        seen += Counter(line["seen"])
        print(f"{first} on: {line['verdict']}, slowest {line['slowest_s']} s {line['violations'][:3]}", flush=True)
    print(f"{given.all} requests, {bad} servers with violations: {dict(sorted(seen.items()))}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
