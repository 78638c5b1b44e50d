"""A wire between us and PostgreSQL that can be cut, and that knows a COMMIT when it sees one.

Every connection has two threads that pass bytes on. `cut_commit` lets one COMMIT go wrong: `before` it reaches the
server, or `after` the server has carried it out, so that only the answer is lost; or it is `late`, and reaches the
server only when it is delivered, long after its sender has lost the connection.

`weather` is what all of them go through for a while: bytes come late or one by one, stand still on one way, or are
taken and never passed on, so that both ends believe in a connection that is none.
"""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Self, TypeAlias
from urllib.parse import urlsplit

COMMIT = b"COMMIT"
How: TypeAlias = Literal["before", "after", "late"]
Way: TypeAlias = Literal["up", "down"]
Weather: TypeAlias = Literal["delay", "trickle", "stall up", "stall down", "half open"]
LATE_S = 0.05
DROP_BYTES, DROPS_S = 40, 0.001
NO_GOODBYE = struct.pack("ii", 1, 0)
"""Lingers for no time: what is closed so is reset."""


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
    lost: bool = False
    """Nothing that it takes is passed on any more, and nobody is told."""

    def end(self, *, goodbye: bool = True) -> None:
        for one in (self.client, self.server):
            with suppress(OSError):
                if not goodbye:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_GOODBYE)
                one.shutdown(socket.SHUT_RDWR if goodbye else socket.SHUT_RD)  # whoever reads it lets go
            one.close()


class Proxy:
    """Listens until closed."""

    def __init__(self, url: str, at: str = "127.0.0.1") -> None:
        said = urlsplit(url)
        self._server = (said.hostname or "127.0.0.1", said.port or 5432)
        self._listening = socket.create_server((at, 0))
        port = self._listening.getsockname()[1]
        self.url = said._replace(netloc=f"{said.username}@127.0.0.1:{port}").geturl()
        self._wires: set[Wire] = set()
        self._lock = threading.Lock()
        self._how: How | None = None
        self._late: tuple[Wire, bytes] | None = None
        self._weather: Weather | None = None
        self.swallowed = threading.Event()
        """Something was taken and not passed on."""
        self._fair = threading.Event()
        self._fair.set()
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

    def cut(self, *, goodbye: bool = True) -> None:
        """All connections, now; without a goodbye they are reset."""
        with self._lock:
            wires, self._wires = self._wires, set()
        for wire in wires:
            wire.end(goodbye=goodbye)

    def turn(self, weather: Weather | None) -> None:
        """From now on; None: it is fair again. A wire that was half open stays so."""
        self._weather = weather
        if weather is None:
            self._fair.set()
        else:
            self._fair.clear()

    def _pieces(self, wire: Wire, text: bytes, way: Way) -> Iterator[bytes]:
        """What gets through, when it does."""
        weather = self._weather
        wire.lost = wire.lost or weather == "half open"
        if wire.lost:
            self.swallowed.set()
            return
        if weather == f"stall {way}":
            self._fair.wait()
        elif weather == "delay":
            time.sleep(LATE_S)
        elif weather == "trickle":
            first, text = text[:DROP_BYTES], text[DROP_BYTES:]
            for at in range(len(first)):
                time.sleep(DROPS_S)
                yield first[at : at + 1]
        yield text

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
                threading.Thread(target=self._back, args=(wire,), daemon=True).start()

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
                for piece in self._pieces(wire, text, "up"):
                    wire.server.sendall(piece)
        if not wire.swallow.is_set():
            wire.end()

    def _back(self, wire: Wire) -> None:
        with suppress(OSError):
            while text := wire.server.recv(65536):
                if wire.swallow.is_set():  # the server has answered, so it is done
                    break
                if not wire.deserted.is_set():
                    for piece in self._pieces(wire, text, "down"):
                        wire.client.sendall(piece)
        wire.over.set()
        wire.end()
