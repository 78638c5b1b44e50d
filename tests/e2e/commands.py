"""The command as users start it: a process, its exit code, its two streams; or a terminal with somebody at it."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.forked import Forked

EVERSTEP = [sys.executable, "-m", "everstep"]
PATIENCE_S = 240.0
"""For what hangs, below the limit of the suite: a demo is dozens of processes, and the machine may be busy."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """A stream of JSON."""
        return [json.loads(line) for line in self.out.splitlines()]


class Project:
    """A folder in which commands are given."""

    def __init__(self, path: Path) -> None:
        self.path = path
        kept = {name: value for name, value in os.environ.items() if not name.startswith("EVERSTEP_")}
        self.environment = {**kept, "XDG_CONFIG_HOME": str(path / "config"), "COLUMNS": "100", "TERM": "xterm"}
        for name in ("CI", "NO_COLOR", "FORCE_COLOR"):
            self.environment.pop(name, None)

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def run(self, *words: str, text: str = "", **environment: str) -> Done:
        env = {**self.environment, **environment}
        starts = subprocess.Popen if any(name.startswith("PYTHON") for name in environment) else Forked  # Python's own
        streams: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with starts([*EVERSTEP, *words], cwd=self.path, env=env, text=True, **streams) as one:
            out, err = one.communicate(text, PATIENCE_S)
        assert "Traceback" not in err.replace("Traceback (most recent call last):\n        File", ""), err
        return Done(one.returncode, out, err)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """A command that goes on meanwhile; its stdout can be read."""
        return Forked(
            [*EVERSTEP, *words],
            cwd=self.path,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def python(self, code: str) -> str:
        """A program of the user's own in this folder."""
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def terminal(self, *words: str) -> "Terminal":
        return Terminal([*EVERSTEP, *words], self.path, self.environment)


class Terminal:
    """A terminal of 100 by 30 with a command in it, and somebody who reads and types."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(ours, (30, 100))
        self.before = termios.tcgetattr(theirs)
        self._device, self._theirs = ours, theirs
        self._raw = b""
        self.process = Forked(command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)

    @property
    def text(self) -> str:
        """Everything that was shown, without colours and cursor moves."""
        return _ESCAPES.sub("", self._raw.decode(errors="replace")).replace("\r\n", "\n")

    def see(self, wanted: str, after: int = 0) -> int:
        """Wait until a text is shown; where it ends."""
        deadline = time.monotonic() + PATIENCE_S
        while (at := self.text.find(wanted, after)) < 0:
            left = deadline - time.monotonic()
            assert left > 0, f"{wanted!r} was never shown:\n{self.text}"
            self._read(left)
        return at + len(wanted)

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self._device], [], [], min(timeout, 1.0))
        if ready:
            try:
                data = os.read(self._device, 65536)
            except OSError:
                data = b""
            self._raw += data
            return bool(data)
        return self.process.poll() is None

    def type(self, text: str) -> None:
        os.write(self._device, text.encode())

    def press_ctrl_c(self) -> None:
        self.type("\x03")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self) -> int:
        """Wait until the command has ended; its exit code."""
        while self.process.poll() is None:
            self._read(1.0)
        while self._read(0.0):
            if not select.select([self._device], [], [], 0)[0]:
                break
        return self.process.wait()

    @property
    def restored(self) -> bool:
        """Whether the terminal is as it was before."""
        return termios.tcgetattr(self._theirs) == self.before

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        os.close(self._device)
        os.close(self._theirs)


TOOLS = '''
import asyncio
import pathlib
from typing import TypedDict

from everstep import Ctx, Misconfigured, tool


class Said(TypedDict):
    text: str


@tool.pure("my.say")
def say(text: str) -> Said:
    """Say it."""
    return {"text": text}


@tool.pure("my.hold")
async def hold(until: str, *, ctx: Ctx) -> Said:
    """Take until a file is there."""
    (ctx.workdir / f"{until}.begun").touch()
    while not (ctx.workdir / until).exists():
        await asyncio.sleep(0.01)
    return {"text": until}


@tool("my.send")
async def send(to: str, until: str = "", *, ctx: Ctx) -> Said:
    """Something that must not happen twice."""
    with (ctx.workdir / "sent.txt").open("a") as file:
        file.write(to + "\\n")
    if until:
        await hold(until, ctx=ctx)
    return {"text": to}


@tool.pure("my.bug")
def bug(n: int) -> int:
    """Has a mistake in it."""
    return {}["missing"] + n


@tool.pure("my.picky")
def picky(path: str) -> Said:
    """Only likes good.txt."""
    if path != "good.txt":
        raise Misconfigured(f"cannot use {path}")
    return {"text": path}
'''


def project(path: Path) -> Project:
    """A folder with tools of its own."""
    made = Project(path)
    made.write("my_tools.py", TOOLS)
    made.write("everstep.toml", 'tools = ["my_tools"]\n')
    return made
