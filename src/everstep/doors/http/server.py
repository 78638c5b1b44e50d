"""The listening socket, TLS, and how it stops: uvicorn as a part of ours, not as a program of its own."""

import asyncio
import contextlib
import errno
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from everstep.domain.errors import EverstepError, NotAllowed, SettingsError
from everstep.doors.http.answer import App
from everstep.doors.http.sockets import ClosableSocket
from everstep.settings.parts import ServeSettings

WEBSOCKET_BYTES_MAX: Final = 64 * 1024
HEADERS_BYTES_MAX: Final = 64 * 1024
PING_S: Final = 20.0
HEADERS_S: Final = 15.0
"""How long a request may take to say what it wants."""
LEAVE_S: Final = 1.5
"""How long connections have to close once everything is said."""


class Embedded(uvicorn.Server):
    """A server whose signals are somebody else's business."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.begun = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say when the first caller may come."""
        await super().startup(sockets)
        self.begun.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield


class Patient(H11Protocol):
    """Reads requests, but not for ever: whoever does not finish its headers in time is hung up on."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first request must come soon."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is expected any more."""
        self._relax()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """A request whose headers are here is the app's business."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._relax()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """It is no HTTP connection any more."""
        self._relax()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """The next request must come soon too."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._expect()

    def _expect(self) -> None:
        self._relax()
        self._late = self.loop.call_later(HEADERS_S, self.transport.close)

    def _relax(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class Listener:
    """A bound socket, and the server on it."""

    def __init__(self, serve: ServeSettings, sock: socket.socket) -> None:
        self._serve = serve
        self._sock = sock
        self._server: Embedded | None = None
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The one that was found, where any would do."""
        return int(self._sock.getsockname()[1])

    @property
    def url(self) -> str:
        """Where a program of this machine reaches it."""
        host, port = self._sock.getsockname()[:2]
        if ipaddress.ip_address(host).is_unspecified:
            host = "127.0.0.1"
        scheme = "http" if self._serve.tls_cert is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def public_url(self) -> str:
        """Where a browser reaches it: by the proxy's name, if there is one."""
        if self._serve.behind_tls_proxy and self._serve.allowed_hosts:
            return f"https://{self._serve.allowed_hosts[0]}"
        return self.url

    async def start(self, app: App) -> None:
        """Take callers; returns when the first may come. Raises SettingsError for a certificate that is none."""
        try:
            config = uvicorn.Config(
                app,
                http=Patient,
                ws=ClosableSocket,
                ws_max_size=WEBSOCKET_BYTES_MAX,
                ws_ping_interval=PING_S,
                ws_ping_timeout=PING_S,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                h11_max_incomplete_event_size=HEADERS_BYTES_MAX,
                timeout_graceful_shutdown=1,
                ssl_certfile=self._serve.tls_cert,
                ssl_keyfile=self._serve.tls_key,
            )
            config.load()
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(
                f"'serve.tls_cert' or 'serve.tls_key' cannot be used: {error.strerror or error}",
                what_to_do="name a certificate and its key, both in PEM",
            ) from error
        self._server = Embedded(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._sock]))
        beginning = asyncio.create_task(self._server.begun.wait())
        await asyncio.wait((beginning, self._serving), return_when=asyncio.FIRST_COMPLETED)
        beginning.cancel()
        if self._serving.done():
            self._serving.result()

    def refuse_more(self) -> None:
        """No new connections; those that are there go on."""
        if self._server is not None and self._server.started:
            for one in self._server.servers:
                one.close()

    async def close(self) -> None:
        """Hang up. Closing twice is harmless."""
        server, serving = self._server, self._serving
        self._server = self._serving = None
        if server is not None and serving is not None:
            server.should_exit = True
            done, _ = await asyncio.wait((serving,), timeout=LEAVE_S)
            if not done:
                server.force_exit = True
                await serving
        self._sock.close()


def listen(serve: ServeSettings) -> Listener:
    """Bind, before anything else is opened; raises NotAllowed beyond the loopback without TLS, or `port_in_use`."""
    if not is_loopback(serve.host) and serve.tls_cert is None and not serve.behind_tls_proxy:
        raise NotAllowed(
            f"{serve.host} can be reached from elsewhere, where tokens must not travel in the clear",
            what_to_do="give --tls-cert and --tls-key, or say --behind-tls-proxy if a proxy in front of it speaks TLS",
        )
    host = "127.0.0.1" if serve.host == "localhost" else serve.host
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, serve.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise SettingsError(f"'serve.host' cannot be used: {host}: {error.strerror}") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen()
        sock.setblocking(False)  # noqa: FBT003 -- the system's own word
    except OSError as error:
        sock.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise EverstepError(
                f"cannot listen at {serve.host}:{serve.port}: {(error.strerror or '').lower()}",
                code="port_in_use",
                what_to_do="end the other process, or choose another port: everstep serve --port 0",
            ) from error
        raise SettingsError(f"'serve.host' cannot be used: {host}: {error.strerror}") from error
    return Listener(serve, sock)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
