"""The quickstart of the docs, walked through as it is written: in a terminal, and in a browser where it says so."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.stage import watch
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
QUICKSTART = ROOT / "docs/quickstart.md"
BLOCK = re.compile(r"```(console|python|yaml)\n(.*?)```", re.DOTALL)
PORT = "8765"
"""Where the text says that a server listens; here it is wherever there is room."""
ENDINGS = {"# Ctrl-C": 130, "# exit 1": 1}
"""What the text says of how a command ends; without it, well."""
KILLED = 137


class Walk:
    """Somebody who follows the text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ready: dict[str, str] = {}
        self._port = str(free_port())
        self._left_running: list[subprocess.Popen[str]] = []
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}

    def write(self, text: str) -> None:
        """A file whose name is its first line; a tool goes to those that are there."""
        name, _, body = text.partition("\n")
        file = self.folder / name.removeprefix("# ")
        before = f"{file.read_text()}\n\n" if file.exists() else ""
        file.write_text(before + body.replace(PORT, self._port))

    def command(self, line: str) -> str:
        """What it says, after it ended as the text says."""
        words, ending = shlex.split(line, comments=True), 0
        for said, code in ENDINGS.items():
            ending = code if said in line else ending
        if words[0] == "cd":
            self.folder /= words[1]
            return ""
        if "# leave it running" in line:
            return self._leave_running(words)
        process = self._start(words)
        told = self._interrupt(process) if ending == signal.SIGINT + 128 else ""
        out, err = process.communicate(timeout=120)
        killed = words[0] == "timeout" and process.returncode in (KILLED, -signal.SIGKILL, 0)
        assert killed or process.returncode == ending, (line, out, told + err)
        return out + told + err

    def _interrupt(self, process: "subprocess.Popen[str]") -> str:
        """As soon as it rests."""
        assert process.stderr is not None
        told = ""
        while "step.waiting" not in told:
            line = process.stderr.readline()
            assert line, told
            told += line
        process.send_signal(signal.SIGINT)
        return told

    def _leave_running(self, words: list[str]) -> str:
        """Its first line, which says that it listens."""
        ours = words[:2] == ["everstep", "serve"]
        more = ["--port", "0", "--json"] if ours else []
        server = self._start([self._port if word == PORT else word for word in words] + more)
        self._left_running.append(server)
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line, server.communicate()
        if ours:
            self.ready = json.loads(line)
        return line

    def leave(self) -> None:
        """Nothing outlives the walk."""
        for server in self._left_running:
            server.kill()
            server.communicate()

    def _start(self, words: list[str]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            words, cwd=self.folder, env=self._env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    one = Walk(tmp_path)
    yield one
    one.leave()


def approve_in_the_browser(walk: Walk, browser: Browser) -> None:
    """Sign in by the link, review, edit, approve, and see what came of it."""
    complaints: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    watch(page, complaints)
    page.goto(walk.ready["sign_in_url"])
    expect(page.locator("[data-row]", has_text="waiting for you")).to_have_count(1)
    page.get_by_role("link", name="Review").click()
    expect(page.locator(".call")).to_contain_text("Hello, eve!")
    page.get_by_role("button", name="Approve with other arguments").click()
    page.get_by_label("text").fill("Good morning")
    page.get_by_role("button", name="Approve the edited call").click()
    expect(page.get_by_text("Answered by local (http)")).to_be_visible()
    page.locator(".item-head a.mono").click()
    expect(page.locator(".task-title .status")).to_have_text("completed")
    page.locator("[data-step=send]").click()
    page.locator("#tab-output").click()
    expect(page.locator("#tab-panel")).to_contain_text("to eve: Good morning")
    page.locator(".task-title .back").click()
    page.get_by_role("link", name="Good-day, Cy").click()  # what was done in the terminal is here too
    expect(page.locator(".task-title .status")).to_have_text("completed")
    context.close()
    assert complaints == []


@pytest.mark.long
@pytest.mark.req("DoD.11", "US.1")
def test_ten_minutes(built: None, walk: Walk, browser: Browser) -> None:
    said: dict[str, str] = {}
    for language, text in BLOCK.findall(QUICKSTART.read_text(encoding="utf-8")):
        if language != "console":
            walk.write(text)
            continue
        for line in text.splitlines():
            if line.startswith("everstep mcp add") and os.geteuid() == 0:
                with (walk.folder / "everstep.toml").open("a") as settings:
                    settings.write("\n[containment]\nuid_base = 0\n")  # root would be somebody else in there
            said[line] = walk.command(line)
            if line.startswith("everstep run letter -i to=eve"):
                approve_in_the_browser(walk, browser)
    told = iter(said.items())
    interrupted = next(text for line, text in told if "# Ctrl-C" in line)
    assert "Nothing is lost" in interrupted
    again = next(told)[1]
    task = re.search(r"t_[0-9a-z]{8}", interrupted)
    assert task is not None
    assert task[0] in again
    assert "attempt.started words" not in again  # it has its outcome
    assert (walk.folder / "out/hello.txt").read_text() == "Hello, Cy!\n"
    assert "sent: to ana: Hello, ana!" in said["everstep run letter -i to=ana --yes"]
    assert "ana@example.test is an address" in next(text for line, text in said.items() if "# exit 1" in line)
    assert "page: Hello, Cy!" in said["everstep run look"]
    assert "mcp.notes.shout" in said["everstep mcp add notes --yes -- python notes.py"]
    assert 'tools = ["shout"]' in (walk.folder / "everstep.toml").read_text()
