"""A WebSocket on which somebody says what nobody may: it is closed, and neither we nor the log make much of it."""

import asyncio

from websockets.asyncio.client import connect

from everstep.doors.http.answer import Receive, Scope, Send
from everstep.doors.http.server import listen
from everstep.settings import load_settings

RESERVED = b"\xf1\x80\0\0\0\0"
"""A frame with bits that have no meaning."""


async def test_what_is_sent_when_it_was_closed_for_what_came_over_it_finds_nobody() -> None:
    """The app hears of it in its turn; a frame that it sends before was taken for a mistake of its own."""
    sent: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        try:
            await send({"type": "websocket.send", "text": "late"})
        except Exception as error:  # noqa: BLE001 -- which one it is, is the question
            sent.set_result(type(error).__name__)

    listener = listen(load_settings({"serve.port": 0}, env={}).serve)
    await listener.start(app)
    try:
        async with connect(listener.url.replace("http", "ws"), compression=None, proxy=None) as client:
            client.transport.write(RESERVED)
            assert await sent == "ConnectionResetError"
            await client.wait_closed()
            assert client.close_code == 1002
    finally:
        await listener.close()
