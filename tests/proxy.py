"""A wire between us and PostgreSQL that can be cut, and that knows a COMMIT when it sees one.

Every connection has two threads that pass bytes on. `cut_commit` lets one COMMIT go wrong: `before` it reaches the
server, or `after` the server has carried it out, so that only the answer is lost; or it is `late`, and reaches the
server only when it is delivered, long after its sender has lost the connection.
"""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias
from urllib.parse import urlsplit

COMMIT = b"COMMIT"
How: TypeAlias = Literal["before", "after", "late"]


@dataclass(eq=False)
class Wire:
    """One connection: both its ends, and what is to become of answers."""

    client: socket.socket
    server: socket.socket
    swallow: threading.Event = field(default_factory=threading.Event)
    """The next answer is the last thing that is heard of the server, and nobody hears it."""
    deserted: threading.Event = field(default_factory=threading.Event)
    """The client is gone and something is late: answers are read for nobody."""
    over: threading.Event = field(default_factory=threading.Event)
    """The server has nothing more to say."""

    def end(self) -> None:
        for one in (self.client, self.server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Proxy:
    """Listens until closed."""

    def __init__(self, url: str) -> None:
        said = urlsplit(url)
        self._server = (said.hostname or "127.0.0.1", said.port or 5432)
        self._listening = socket.create_server(("127.0.0.1", 0))
        port = self._listening.getsockname()[1]
        self.url = said._replace(netloc=f"{said.username}@127.0.0.1:{port}").geturl()
        self._wires: set[Wire] = set()
        self._lock = threading.Lock()
        self._how: How | None = None
        self._late: tuple[Wire, bytes] | None = None
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
        (wire, text), self._late = self._late, None
        wire.server.sendall(text)
        wire.server.shutdown(socket.SHUT_WR)
        wire.over.wait()

    def cut(self) -> None:
        """All connections, now."""
        with self._lock:
            wires, self._wires = self._wires, set()
        for wire in wires:
            wire.end()

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
                wire = Wire(client, server)
                with self._lock:
                    self._wires.add(wire)
                threading.Thread(target=self._up, args=(wire,), daemon=True).start()
                threading.Thread(target=_back, args=(wire,), daemon=True).start()

    def _up(self, wire: Wire) -> None:
        held = b""
        with suppress(OSError):
            while text := wire.client.recv(65536):
                how = self._how
                if how == "late" and b"READ ONLY" not in text:
                    held += text
                    if COMMIT in held:
                        self._how, self._late = None, (wire, held)
                        wire.deserted.set()
                        wire.client.close()
                        return
                    continue
                if how is not None and COMMIT in text and b"READ ONLY" not in text:
                    self._how = None
                    self.cuts += 1
                    if how == "before":
                        break
                    wire.swallow.set()
                wire.server.sendall(text)
        if not wire.swallow.is_set():
            wire.end()


def _back(wire: Wire) -> None:
    with suppress(OSError):
        while text := wire.server.recv(65536):
            if wire.swallow.is_set():  # the server has answered, so it is done
                break
            if not wire.deserted.is_set():
                wire.client.sendall(text)
    wire.over.set()
    wire.end()
