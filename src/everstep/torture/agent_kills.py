"""Kill a durable function of many calls at random moments, and count at the server what was called.

python -m everstep.torture.agent_kills [--calls 200] [--kills 50] [--seed 1]
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from everstep.torture.agent import RESULT
from everstep.torture.checker import Bounds, check
from everstep.torture.history import Logs, Violation, read_effects

CALL_S: Final = 0.002
PATIENCE_S: Final = 300.0


def after(value: int) -> int:
    """What the server makes of a value."""
    return (value * 31 + 7) % 1_000_003


class Server(ThreadingHTTPServer):
    """Somebody else's: it hears of every call, and remembers what it has done for which key."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.made: dict[str, int] = {}
        self.counts: Counter[tuple[str, str]] = Counter()
        self.heard = threading.Condition()
        self.total = 0
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, path: str, said: dict[str, Any]) -> int | None:
        if path == "/look":
            return self.made.get(said["key"])
        value = after(said["value"])
        with self.heard:
            self.counts[path, said["step"]] += 1
            self.made[said["key"]] = value
            self.total += 1
            self.heard.notify_all()
        time.sleep(CALL_S)
        return value

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked was killed."""

    def wait_for(self, total: int, process: "subprocess.Popen[bytes]") -> bool:
        """Until so many calls have come; false if the process ended before."""
        until = time.monotonic() + PATIENCE_S
        with self.heard:
            while self.total < total:
                if process.poll() is not None:
                    return False
                assert time.monotonic() < until, "the agent makes no calls any more"
                self.heard.wait(0.05)
        return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = json.dumps(self.server.answer(self.path, said)).encode()
        with suppress(OSError):  # whoever asked may be dead
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@dataclass(slots=True)
class Account:
    """What a campaign came to."""

    kills: int = 0
    result: Any = None
    acted_twice: list[str] = field(default_factory=list)
    thought_again: int = 0
    calls: int = 0
    violations: list[Violation] = field(default_factory=list)
    seconds: float = 0.0


def campaign(folder: Path, calls: int, kills: int, seed: int = 1) -> Account:
    """Carry the agent through so many kills to its end."""
    server, account = Server(), Account()
    chance = random.Random(seed)  # noqa: S311 -- seeded, so that a campaign can be repeated
    words = [sys.executable, "-m", "everstep.torture.agent", str(folder), str(calls), server.url]
    began = time.monotonic()
    most = max(1, round(1.4 * calls / (kills + 1)))
    while not (folder / RESULT).exists():
        with subprocess.Popen(words) as process:  # noqa: S603 -- ourselves
            if account.kills < kills and server.wait_for(server.total + chance.randint(1, most), process):
                time.sleep(chance.random() * 3 * CALL_S)
                process.send_signal(signal.SIGKILL)
                account.kills += 1
            assert process.wait(PATIENCE_S) in {0, -signal.SIGKILL}, "the agent broke"
    server.shutdown()
    server.server_close()
    account.seconds = time.monotonic() - began
    account.result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    account.acted_twice = [step for (path, step), times in server.counts.items() if path == "/act" and times > 1]
    account.thought_again = sum(times - 1 for (path, _), times in server.counts.items() if path == "/think")
    account.calls = len(server.counts)
    logs = Logs(effects=read_effects(folder / "effects.jsonl"))
    account.violations = check(folder / "store.db", logs, Bounds(max_recoveries=1000, healed=True))
    return account


def main() -> int:
    """Compare a killed run with one that nobody disturbed."""
    parser = argparse.ArgumentParser(prog="everstep.torture.agent_kills")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="everstep-agent-") as folder:
        (Path(folder) / "clean").mkdir()
        (Path(folder) / "killed").mkdir()
        clean = campaign(Path(folder) / "clean", given.calls, 0)
        killed = campaign(Path(folder) / "killed", given.calls, given.kills, given.seed)
    same = killed.result == clean.result and killed.result["status"] == "completed"
    print(
        f"{killed.kills} kills, {killed.calls} calls at the server, {len(killed.acted_twice)} made twice, "
        f"{killed.thought_again} pure calls made again while nothing was recorded, "
        f"result {'the same' if same else 'ANOTHER'}, {len(killed.violations)} violations, {killed.seconds:.0f} s"
    )
    for violation in killed.violations:
        print(f"  {violation.check} {violation.task} {violation.seq}: {violation.what}")
    return 0 if same and not killed.violations and not killed.acted_twice else 1


if __name__ == "__main__":
    sys.exit(main())
