"""A host of our own: a network namespace at the other end of a wire that can be unplugged. Needs root."""

import itertools
import os
import subprocess
from typing import Self

_NUMBERS = itertools.count(os.getpid() % 16_000 * 4)


class Host:
    """As long as it is entered."""

    def __init__(self) -> None:
        number = next(_NUMBERS) % 64_000
        self._name = f"everstep{number}"
        self._here, self._there = f"evh{number}", f"evt{number}"
        net = f"10.{200 + number // 16_000}.{number // 64 % 250}.{number % 64 * 4}"
        base, last = net.rsplit(".", 1)
        self.ours, self._theirs = f"{base}.{int(last) + 1}", f"{base}.{int(last) + 2}"

    @property
    def enter(self) -> list[str]:
        """What a command begins with that is to begin there."""
        return ["ip", "netns", "exec", self._name]

    def __enter__(self) -> Self:
        _ip("netns", "add", self._name)
        try:
            _ip("link", "add", self._here, "type", "veth", "peer", "name", self._there, "netns", self._name)
            _ip("addr", "add", f"{self.ours}/30", "dev", self._here)
            _ip("link", "set", self._here, "up")
            for word in (
                ("addr", "add", f"{self._theirs}/30", "dev", self._there),
                ("link", "set", self._there, "up"),
                ("link", "set", "lo", "up"),
            ):
                _ip("-n", self._name, *word)
        except BaseException:
            self.__exit__()
            raise
        return self

    def link(self, *, up: bool) -> None:
        """Plug it in, or out."""
        _ip("link", "set", self._here, "up" if up else "down")

    def __exit__(self, *_: object) -> None:
        _ip("netns", "del", self._name)  # its end of the wire goes with it, and so does ours


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
