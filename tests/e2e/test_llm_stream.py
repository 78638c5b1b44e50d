"""What a model says is seen while it speaks, by whoever watches its task or all tasks; only the outcome is kept."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everstep.testing.rig import Asked, HttpRig, Writer
from tests.e2e.served import Served, served

WORDS = ["Solar ", "storage ", "is ", "cheap."]


class Speaker:
    """A model that says the next word when it is let."""

    def __init__(self) -> None:
        self.may = asyncio.Semaphore(0)

    async def __call__(self, _asked: Asked, writer: Writer) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
        for word in WORDS:
            await self.may.acquire()
            event = {"choices": [{"delta": {"content": word}, "finish_reason": None}]}
            writer.write(f"data: {json.dumps(event)}\n\n".encode())
            await writer.drain()
        await self.may.acquire()
        writer.write(b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
        await writer.drain()
        return False


async def frames(door: Served, path: str) -> AsyncIterator[dict[str, Any]]:
    async with door.socket(path) as socket:
        async for text in socket:
            yield json.loads(text)


@pytest.mark.parametrize("of_all", [False, True], ids=["its task", "all tasks"])
async def test_words_are_seen_as_they_are_said(tmp_path: Path, *, of_all: bool) -> None:
    async with HttpRig() as rig, asyncio.timeout(60):
        speaker = Speaker()
        rig.on("/v1/chat/completions", speaker)
        endpoint = {"llm.endpoints.rig.url": rig.url("/v1"), "llm.endpoints.rig.model": "m"}
        async with served(tmp_path, **endpoint) as door:
            plan = {"name": "p", "steps": [{"id": "a", "tool": "llm.chat", "with": {"prompt": "?"}}]}
            task = await door.start(plan)
            path = "/v1/events?ticks=1" if of_all else f"/v1/tasks/{task}/events"
            seen, heard, spoke = "", [], False
            async for frame in frames(door, path):
                if frame["type"] == "tick" and not spoke:
                    spoke = True  # whoever watches is there now
                    for _ in range(len(WORDS)):
                        speaker.may.release()
                if frame["type"] == "output":
                    assert (frame["task"], frame["step"], frame["attempt"]) == (task, "a", 1)
                    assert frame["volatile"]
                    seen += frame["text"]
                    heard.append(frame["n"])
                    if seen == "".join(WORDS):
                        speaker.may.release()
                if frame["type"] == "event" and frame["event"]["type"] == "task.completed":
                    break
            assert seen == "".join(WORDS)
            assert heard == list(range(1, len(heard) + 1))
            kept = await door.good("GET", f"/v1/tasks/{task}/events?after=0")
            assert {event["type"] for event in kept["events"]} >= {"step.completed"}
            assert "output" not in {event["type"] for event in kept["events"]}
