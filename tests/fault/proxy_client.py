"""A client of the proxy, as small as possible: `python proxy_client.py FOLDER COMMAND…`, until there is a file `stop`.

It buys one thing after the other, each with a key of its own, and writes down what it was told: what stands in
`replies.jsonl` was received. The one after the last is asked for first, since nobody knows what became of it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "buyer", "version": "1"}}


class Line:
    """JSON-RPC with a program."""

    def __init__(self, words: list[str], folder: Path, env: Mapping[str, str] | None = None) -> None:
        with (folder / "stderr").open("ab") as log:
            self.process = subprocess.Popen(
                words, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        (folder / "proxy.pid").write_text(str(self.process.pid))
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The reply; ends this program if nobody is there any more."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            said: dict[str, Any] = json.loads(line)
            if said.get("id") == self._number:
                return said
        raise SystemExit(3)

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise SystemExit(3) from None

    def hello(self) -> None:
        self.ask("initialize", **HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def buy(self, n: int) -> list[Any]:
        """What a call with this key came to: whether it failed, and its text."""
        meta = {"everstep/idempotency_key": f"thing-{n}"}
        said = self.ask("tools/call", name="buy", arguments={"n": n}, _meta=meta)["result"]
        return [bool(said.get("isError")), said["content"][0]["text"]]


def main(folder: Path, words: list[str]) -> None:
    replies = folder / "replies.jsonl"
    n = len(replies.read_text().splitlines()) if replies.exists() else 0
    line = Line(words, folder)
    line.hello()
    with replies.open("a") as log:
        while not (folder / "stop").exists():
            log.write(json.dumps(line.buy(n)) + "\n")
            log.flush()
            os.fsync(log.fileno())
            n += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
