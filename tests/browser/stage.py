"""A project served by `everstep serve`, pages that look at it, and everything a page may never say on its console."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
import psutil
from playwright.sync_api import Browser, ConsoleMessage, Page

from tests.forked import Forked
from tests.ports import free_port

PROJECT = Path(__file__).with_name("project")
SOURCES = Path(__file__).parents[2] / "src"
ALWAYS_FINE = ("Failed to load resource", "WebSocket connection to")
"""What a browser itself says about a server that is away or refuses."""


def chromium() -> str:
    """The system's browser."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found is not None, "these tests need a browser: apt-get install chromium"
    return found


class Stage:
    """One project, its server, and its world."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(PROJECT, folder)
        self.folder = folder
        self.gates = folder / "gates"
        self.gates.mkdir()
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.ready: dict[str, Any] = {}
        self._server: subprocess.Popen[str] | None = None
        self._http: httpx2.Client | None = None

    def serve(self) -> None:
        """Start it, at the same port every time; returns when it answers."""
        self._server = self._start("serve", "--json", "--testing", "--port", str(self.port))
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line, self.complaint()
        self.ready = json.loads(line)

    def kill(self) -> None:
        """As the power going out."""
        assert self._server is not None
        self.close()

    def close(self) -> None:
        """Nothing outlives a test."""
        if self._server is not None:
            self._server.kill()
            self._server.communicate()
            self._server = None
        if self._http is not None:
            self._http.close()
            self._http = None

    def cpu_s(self) -> float:
        """CPU time of the server so far."""
        assert self._server is not None
        spent = psutil.Process(self._server.pid).cpu_times()
        return float(spent.user + spent.system)

    def complaint(self) -> str:
        """What the server said before it left."""
        return (self.folder / "errors.txt").read_text()

    def cli(self, *words: str) -> str:
        """A command of somebody else, at another terminal."""
        done = self._start(*words)
        out, _ = done.communicate(timeout=60)
        assert done.returncode == 0, self.complaint()
        return out

    def _start(self, *words: str) -> "subprocess.Popen[str]":
        with (self.folder / "errors.txt").open("a") as errors:
            return Forked(
                [sys.executable, "-m", "everstep", *words],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(SOURCES)},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    @property
    def token(self) -> str:
        return (self.folder / ".everstep/token").read_text().strip()

    def api(self, method: str, path: str, body: Any = None, *, token: str | None = None) -> Any:
        """What another program would ask."""
        headers = {"authorization": f"Bearer {token or self.token}"}
        self._http = self._http or httpx2.Client(timeout=60)  # one for all: each reads the certificates of the world
        reply = self._http.request(method, self.url + path, json=body, headers=headers)
        assert reply.status_code < 300, reply.text
        return reply.json() if reply.content else None

    def start(self, plan: str | dict[str, Any], **inputs: Any) -> str:
        what = {"plan_name": plan} if isinstance(plan, str) else {"plan": plan}
        return str(self.api("POST", "/v1/tasks", {**what, "inputs": inputs})["id"])

    def until(self, task: str, *statuses: str) -> dict[str, Any]:
        """The task, as soon as it stands so; the next event wakes this up."""
        seen: dict[str, Any] = {}
        for _ in range(100):
            seen = self.api("GET", f"/v1/tasks/{task}")
            if seen["status"] in statuses:
                return seen
            self.api("GET", f"/v1/tasks/{task}/events?after={seen['seq']}&limit=1&wait=5&types=task.,pause.")
        raise AssertionError(f"{task} is {seen['status']}: {seen['explain']['text']}")

    def heard(self, task: str, kind: str, times: int = 1) -> None:
        """Return as soon as the journal holds so many events of this type."""
        after = 0
        for _ in range(100):
            page = self.api("GET", f"/v1/tasks/{task}/events?after={after}&wait=5&types={kind}")
            times -= len(page["events"])
            if times <= 0:
                return
            after = page["next_after"]
        raise AssertionError(f"{task} has no {kind}: {self.types(task)}")

    def open_gate(self, name: str) -> None:
        (self.gates / name).touch()

    def events(self, task: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.api("GET", f"/v1/tasks/{task}/events?after=0&limit=500")["events"]
        return found

    def types(self, task: str) -> list[str]:
        return [event["type"] for event in self.events(task)]

    @contextmanager
    def page(
        self,
        browser: Browser,
        path: str = "/",
        *,
        width: int = 1440,
        theme: Literal["light", "dark"] = "light",
        **more: Any,
    ) -> Iterator[Page]:
        """A page of somebody signed in; whatever its console complains about fails the test."""
        height = 844 if width < 600 else 900
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            reduced_motion="reduce",
            **more,
        )
        key = "'everstep.token'"
        context.add_init_script(f"localStorage.getItem({key}) || localStorage.setItem({key}, {json.dumps(self.token)})")
        page = context.new_page()
        page.set_default_timeout(30_000)
        complaints: list[str] = []
        watch(page, complaints)
        page.goto(self.url + path)
        try:
            yield page
        finally:
            context.close()
        assert complaints == []


def watch(page: Page, complaints: list[str]) -> None:
    """Note every error and warning."""

    def said(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(ALWAYS_FINE):
            complaints.append(message.text)

    page.on("console", said)
    page.on("pageerror", lambda error: complaints.append(str(error)))
