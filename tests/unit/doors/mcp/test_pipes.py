"""Stdio without threads: every line once and whole, whatever it comes in; a slow reader keeps nobody else waiting."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from anyio import BrokenResourceError, EndOfStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

from everstep.doors.mcp.pipes import Incoming, Outgoing

LONG = "x" * 300_000
"""More than a pipe holds."""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


def request(id: int, text: str = "") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping", "params": {"text": text}}).encode()


def id_of(said: SessionMessage | Exception) -> object:
    assert isinstance(said, SessionMessage)
    assert isinstance(said.message, JSONRPCRequest)
    return said.message.id


def notice(text: str) -> SessionMessage:
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="told", params={"text": text}))


async def test_lines_come_whole_in_whatever_pieces(pipe: tuple[int, int]) -> None:
    source, wire = pipe
    incoming = Incoming(source)
    text = request(1) + b"\n" + request(2, LONG) + b"\r\n" + request(3)

    def speak() -> None:
        for at in range(0, len(text), 7_001):
            os.write(wire, text[at : at + 7_001])
        os.close(wire)

    speaking = threading.Thread(target=speak)
    speaking.start()
    assert [id_of(said) async for said in incoming] == [1, 2, 3], "the last one has no end of its own"
    speaking.join()
    with pytest.raises(EndOfStream):
        await incoming.receive()


async def test_who_says_more_than_is_asked_for_waits(pipe: tuple[int, int]) -> None:
    source, wire = pipe
    many = 20_000
    written = 0

    def speak() -> None:
        nonlocal written
        for number in range(many):
            written = number
            os.write(wire, request(number) + b"\n")
        os.close(wire)

    speaking = threading.Thread(target=speak)
    async with Incoming(source) as incoming:
        speaking.start()
        first = await incoming.receive()
        before = -1
        while before != written:  # until it gets no further
            before = written
            await asyncio.to_thread(speaking.join, 0.2)
        assert written < many / 2
        assert [id_of(first), *[id_of(said) async for said in incoming]] == [*range(many)]
    speaking.join()


async def test_what_is_no_message_is_told_and_the_next_one_is_read(pipe: tuple[int, int]) -> None:
    source, wire = pipe
    async with Incoming(source) as incoming:
        os.write(wire, b"\nhello\n\xff\xfe\n" + request(4) + b"\n")
        assert [isinstance(await incoming.receive(), ValueError) for _ in range(3)] == [True] * 3
        assert id_of(await incoming.receive()) == 4


async def test_a_file_can_be_read_too(tmp_path: Path) -> None:
    (tmp_path / "said").write_bytes(request(5) + b"\n" + request(6) + b"\n")
    with (tmp_path / "said").open("rb") as source, closing(source):
        assert [id_of(said) async for said in Incoming(source.fileno())] == [5, 6]


async def test_a_slow_reader_keeps_nobody_waiting_and_hears_everything_in_order(pipe: tuple[int, int]) -> None:
    source, wire = pipe
    outgoing = Outgoing(wire)
    long = asyncio.ensure_future(outgoing.send(notice(LONG)))
    await asyncio.sleep(0)
    short = asyncio.ensure_future(outgoing.send(notice("short")))
    await asyncio.sleep(0)
    assert not long.done()
    assert not short.done(), "it stands behind the long one"
    long.cancel()

    def listen() -> list[str]:
        with os.fdopen(source, "rb", closefd=False) as lines:
            return [json.loads(lines.readline())["params"]["text"] for _ in range(3)]

    heard = asyncio.ensure_future(asyncio.to_thread(listen))
    await short
    await outgoing.aclose()
    await outgoing.send(notice("last"))
    assert await heard == [LONG, "short", "last"], "also what nobody waits for any more"


@pytest.mark.parametrize("text", ["short", LONG])
async def test_who_has_gone_is_told_nothing_more(pipe: tuple[int, int], text: str) -> None:
    source, wire = pipe
    outgoing = Outgoing(wire)
    os.close(source)
    with pytest.raises(BrokenResourceError):
        await outgoing.send(notice(text))
    await outgoing.aclose()
