"""A wire between us and PostgreSQL that can be cut, and that knows a COMMIT when it sees one.

Every connection has two threads that pass bytes on. `cut_commit` lets one COMMIT go wrong: `before` it reaches the
server, or `after` the server has carried it out, so that only the answer is lost; or it is `late`, and reaches the
server only when it is delivered, long after its sender has lost the connection.
"""

import socket
import threading
from contextlib import suppress
from typing import Literal, Self, TypeAlias
from urllib.parse import urlsplit

COMMIT = b"COMMIT"
How: TypeAlias = Literal["before", "after", "late"]


class Proxy:
    """Listens until closed."""

    def __init__(self, url: str) -> None:
        said = urlsplit(url)
        self._server = (said.hostname or "127.0.0.1", said.port or 5432)
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = said._replace(netloc=f"{said.username}@127.0.0.1:{port}").geturl()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._how: How | None = None
        self._late: tuple[socket.socket, bytes] | None = None
        self.down = False
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        self.cut()

    def cut_commit(self, how: How) -> None:
        """The next COMMIT goes wrong."""
        self._how = how

    def deliver(self) -> None:
        """What is late; returns when the server is done with it."""
        assert self._late is not None
        (server, text), self._late = self._late, None
        with server:
            server.sendall(text)
            server.shutdown(socket.SHUT_WR)
            while server.recv(65536):
                pass

    def cut(self) -> None:
        """All connections, now."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            _end(pair)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self.down:
                    client.close()
                    continue
                try:
                    server = socket.create_connection(self._server)
                except OSError:  # it is away: whoever called us learns it
                    client.close()
                    continue
                pair = (client, server)
                with self._lock:
                    self._pairs.add(pair)
                answers = threading.Event()
                threading.Thread(target=self._up, args=(pair, answers), daemon=True).start()
                threading.Thread(target=self._back, args=(pair, answers), daemon=True).start()

    def _up(self, pair: tuple[socket.socket, socket.socket], swallow: threading.Event) -> None:
        client, server = pair
        held = b""
        with suppress(OSError):
            while text := client.recv(65536):
                how = self._how
                if how == "late" and b"READ ONLY" not in text:
                    held += text
                    if COMMIT in held:
                        self._how, self._late = None, (server.dup(), held)
                        client.close()
                        return
                    continue
                if how is not None and COMMIT in text and b"READ ONLY" not in text:
                    self._how = None
                    self.cuts += 1
                    if how == "before":
                        break
                    swallow.set()
                server.sendall(text)
        if not swallow.is_set():
            _end(pair)

    def _back(self, pair: tuple[socket.socket, socket.socket], swallow: threading.Event) -> None:
        client, server = pair
        with suppress(OSError):
            while text := server.recv(65536):
                if swallow.is_set():  # the server has answered, so it is done
                    break
                client.sendall(text)
        _end(pair)


def _end(pair: tuple[socket.socket, socket.socket]) -> None:
    for one in pair:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
