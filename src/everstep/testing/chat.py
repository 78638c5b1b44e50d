"""Answers of a chat endpoint, for `HttpRig`: whole, slow, cut in the middle, refused, or made up by a function.

rig.on("/v1/chat/completions", [says("hello"), says_by(lambda asked: f"You said {asked['messages'][-1]['content']}")])
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeAlias

from everstep.domain.record import record
from everstep.testing.rig import Asked, Behaviour, Writer, answer, reset

Think: TypeAlias = Callable[[dict[str, Any]], str]
"""What a model says to a request."""


@record
class Manner:
    """How it is said."""

    model: str = "rig-1"
    tokens: tuple[int, int] | None = (12, 5)
    """Of the question and of the answer; None: it does not say."""
    finish: str = "stop"
    pieces: int = 3
    gap_s: float = 0.0
    cut_after: int | None = None
    """Goes away after so many pieces."""
    streams: bool = True
    """Whether it can stream at all."""
    refusal: str | None = None


USUAL = Manner()


def says(text: str, manner: Manner = USUAL) -> Behaviour:
    """The same words every time."""
    return says_by(lambda _asked: text, manner)


def says_by(think: Think, manner: Manner = USUAL) -> Behaviour:
    """Words that depend on what was asked."""

    async def behave(asked: Asked, writer: Writer) -> bool:
        wanted = json.loads(asked.body)
        text = think(wanted)
        if not manner.streams or not wanted.get("stream"):
            return await answer(200, _whole(text, manner))(asked, writer)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number, event in enumerate(_events(text, manner)):
            if manner.cut_after == number:
                await writer.drain()
                return await reset(asked, writer)
            data = f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode()
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
            await asyncio.sleep(manner.gap_s)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    return behave


def _whole(text: str, manner: Manner) -> Any:  # noqa: ANN401 -- any JSON
    message = {"role": "assistant", "content": text, "refusal": manner.refusal}
    choice = {"index": 0, "message": message, "finish_reason": manner.finish}
    return {"model": manner.model, "choices": [choice], **_usage(manner)}


def _events(text: str, manner: Manner) -> list[Any]:
    size = max(1, -(-len(text) // manner.pieces))
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    deltas: list[dict[str, Any]] = [{"content": piece} for piece in pieces]
    deltas += [{"refusal": manner.refusal}] if manner.refusal else []
    events: list[Any] = [_event(delta, None, manner) for delta in deltas]
    events.append(_event({}, manner.finish, manner))
    if manner.tokens is not None:
        events.append({"model": manner.model, "choices": [], **_usage(manner)})
    return [*events, "[DONE]"]


def _event(delta: dict[str, Any], finish: str | None, manner: Manner) -> dict[str, Any]:
    return {"model": manner.model, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _usage(manner: Manner) -> dict[str, Any]:
    if manner.tokens is None:
        return {}
    return {"usage": {"prompt_tokens": manner.tokens[0], "completion_tokens": manner.tokens[1]}}
