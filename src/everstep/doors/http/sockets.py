"""A WebSocket of uvicorn's that can be closed although its reader does not read, and whatever somebody says on it.

uvicorn waits for room before it sends anything, the close included, and then for ever for what was sent to be read;
meanwhile the system would keep megabytes for each of them. It falls over text that is none behind a close, and takes
for our mistake what is still to be sent when it has closed for what it heard.
"""

import socket
from asyncio import BaseTransport
from typing import Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import OPEN

CLOSE_S: Final = 10.0
"""How long the other side has to take what is still to be read, and to close too."""

NO_TEXT: Final = 1007

SEND_BYTES: Final = 128 * 1024
"""What the system keeps for one reader, on top of what waits here."""


class ClosableSocket(WebSocketsSansIOProtocol):
    """The same, but a close goes out at once, and ends."""

    _ended_itself = False

    def connection_made(self, transport: BaseTransport) -> None:
        """Bound what the system keeps."""
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    async def send(self, message: Any) -> None:  # noqa: ANN401 -- uvicorn's own type is private
        """A close does not wait for the reader; where there is none any more, that is what is said."""
        if self._ended_itself:
            raise ConnectionResetError("it was closed for what came over it")
        closes = message["type"] == "websocket.close" and self.handshake_complete and not self.close_sent
        if closes:
            self.writable.set()
        await super().send(message)
        if closes and self.close_timer is not None:
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(CLOSE_S, self.transport.abort)

    def send_receive_event_to_app(self) -> None:
        """Text that is none ends it; what stands behind a close is not heard."""
        if self.conn.state is not OPEN:
            self.frames = []
            return
        try:
            if self.curr_msg_data_type == "text":
                b"".join(self.frames).decode()
        except UnicodeDecodeError:
            self.frames = []
            self.conn.send_close(NO_TEXT)
            self.handle_parser_exception()
            return
        super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        """Closed for what was heard: the app is told, and may be about to send something."""
        self._ended_itself = True
        super().handle_parser_exception()

    def keepalive_timeout(self) -> None:
        """Who does not even answer a ping will not read a good-bye."""
        super().keepalive_timeout()
        self.transport.abort()
