"""What stands around the browser: tried by Chromium itself, and by a program behind the same walls."""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from everstep.adapters.browser.place import Place, Wanted, place_for
from everstep.adapters.browser.running import Running
from everstep.adapters.browser.shared import SharedBrowser, nowhere
from everstep.adapters.isolation.bounds import Walls
from everstep.adapters.isolation.group import best_roots
from everstep.adapters.isolation.tree import tree
from everstep.adapters.net import Client
from everstep.adapters.net.guard import Guard
from everstep.adapters.tools.browser import BrowserTools
from everstep.domain.ids import Millis
from everstep.domain.plan import LimitsSpec
from everstep.domain.usage import Measured
from everstep.ports.tool import Origin, ToolError
from everstep.testing.context import Context, call_of

UID = 61185
PAGE = """<title>Shop</title><input type=file id=file onchange="this.files[0].text().then(text =>
  document.body.append(Object.assign(document.createElement('p'), {id: 'said', textContent: text})))">"""
BUSY = "<title>Busy</title><script>setTimeout(() => { while (true) {} })</script>"
PROBE = """#!/bin/bash
read -u 3 way other engine canary
got() { echo "$1" >&4; }
(exec 9<>/dev/tcp/127.0.0.1/$way) 2>/dev/null && got way
(exec 9<>/dev/tcp/127.0.0.1/$other) 2>/dev/null && got other
(exec 9<>/dev/udp/127.0.0.1/53) 2>/dev/null && got udp
cat "$canary" >/dev/null 2>&1 && got read
cat "/proc/$engine/root$canary" >/dev/null 2>&1 && got root
cat "/proc/$engine/environ" >/dev/null 2>&1 && got environ
(echo x > "$canary") 2>/dev/null && got written
kill -0 "$engine" 2>/dev/null && got signalled
[ -n "$EVERSTEP_SECRET_KEY" ] && got secret
(echo x > "$HOME/mine") 2>/dev/null && got home
got "uid $(id -u)"
"""
INSIDE = {"way", "home"}
"""What it may do."""


@pytest.fixture
def ground() -> Iterator[Path]:
    """A folder that everybody can read: what keeps the program out are the walls alone."""
    folder = Path(tempfile.mkdtemp(prefix="everstep-probe-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
async def at() -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        raw = (BUSY if b"/busy" in asked else PAGE).encode()
        writer.write(f"HTTP/1.1 200 X\r\ncontent-type: text/html\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


@pytest.fixture
async def browser() -> AsyncIterator[SharedBrowser]:
    one = SharedBrowser(uid=UID)
    yield one
    await one.close()


def restricted(running: Running) -> None:
    """Every machine that these tests are for has all of them; one that has not is told which is lacking."""
    assert (running.held["level"], running.held["missing"]) == ("restricted", [])


def chromium(running: Running) -> list[psutil.Process]:
    return [one for one in running.processes() if "chrom" in one.name()]


def kept_in(kind: str, process: psutil.Process) -> Path:
    """The namespace of this kind."""
    return Path(f"/proc/{process.pid}/ns/{kind}").readlink()


@pytest.mark.req("Web.1")
async def test_no_process_of_it_is_root_or_in_our_network(browser: SharedBrowser) -> None:
    async with browser.context(nowhere) as (context, running):
        page = await context.new_page()
        assert await page.evaluate("navigator.onLine") is True
        restricted(running)
        family = chromium(running)
        assert len(family) > 2
        assert kept_in("net", psutil.Process()) not in {kept_in("net", one) for one in family}
        assert 0 not in {uid for one in family for uid in one.uids()}
        expected = {"network": "proxy", "seccomp": True, "uid": UID if os.getuid() == 0 else os.getuid()}
        assert expected.items() <= running.held.items()
        renderers = [one for one in family if "--type=renderer" in one.cmdline()]
        inner = {kept_in("user", one) for one in renderers}
        assert (kept_in("user", family[0]) not in inner) is running.held["browser_sandbox"]


async def test_nothing_is_left_of_it(browser: SharedBrowser) -> None:
    async with browser.context(nowhere) as (context, running):
        await context.new_page()
        assert running.place is not None
        folder, group, family = running.place.folder, running.place.group, running.processes()
        assert (folder / "home/profile").is_dir()
    await browser.close()
    assert not folder.exists()
    assert not [one for one in family if one.is_running()]
    assert group is None or not any(place.exists() for place in group.folders.values())


@pytest.mark.parametrize("without", [(), ("namespaces",), ("cgroup",)])
@pytest.mark.req("Web.1")
async def test_a_program_behind_the_same_walls_reaches_the_proxy_and_nothing_else(
    ground: Path, without: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERSTEP_SECRET_KEY", "hunter2hunter2")
    place = probing(ground, without)
    said = await probed(place, ground / "outside/canary")
    assert place.held["missing"] == []
    assert place.held["network"] == "proxy"
    assert ("net" in as_list(place.held["namespaces"])) is ("namespaces" not in without)
    assert said == {*INSIDE, f"uid {place.held['uid']}"}
    assert place.held["uid"] != 0


async def test_a_program_without_walls_would_reach_more(ground: Path) -> None:
    """Whoever looks would see it."""
    place = probing(ground, ("namespaces", "landlock", "seccomp", "uid"))
    said = await probed(place, ground / "outside/canary")
    assert {"other", "udp", "read", "written", "signalled"} <= said
    lacking = ["uid"] * (os.getuid() == 0) + ["landlock", "seccomp", "network"]
    assert (place.held["level"], place.held["missing"], place.held["network"]) == ("limited", lacking, "host")


def probing(ground: Path, without: tuple[str, ...]) -> Place:
    """A place for a program that tries what a browser must not."""
    (ground / "bin").mkdir(mode=0o755)
    (ground / "bin/probe").write_text(PROBE)
    (ground / "bin/probe").chmod(0o755)
    (ground / "outside").mkdir(mode=0o755)
    (ground / "outside/canary").write_text("secret")
    (ground / "outside/canary").chmod(0o666)
    return place_for(Wanted(program=str(ground / "bin/probe"), uid=UID, ways=2, without=without))


async def probed(place: Place, canary: Path) -> set[str]:
    """What it could do, as it says on the line that is the browser's; `other` is a server of ours."""
    (there, tell), (hear, back) = os.pipe(), os.pipe()
    words = f'exec 3<&{there} 4>&{back}; exec "{place.program}" --user-data-dir=/nowhere'
    try:
        with socket.create_server(("127.0.0.1", 0)) as other:
            started = await asyncio.create_subprocess_exec("/bin/bash", "-c", words, pass_fds=(there, back))
            for end in (there, back):
                os.close(end)
            async with asyncio.timeout(60):
                await place.told()
                assert len(place.ways) == 2
                with os.fdopen(tell, "w") as line:
                    ports = [one.getsockname()[1] for one in (place.ways[0], other)]
                    line.write(f"{ports[0]} {ports[1]} {os.getpid()} {canary}\n")
                await started.wait()
    finally:
        left = place.folder.exists()
        await asyncio.to_thread(place.close)
    assert not left  # whoever walled it in has seen to that, so it holds for an engine that was killed
    with os.fdopen(hear) as said:
        return set(said.read().splitlines())


def as_list(value: Any) -> list[Any]:
    return list(value)


class Asking:
    """Calls of the tools, and what was measured."""

    def __init__(self, browser: SharedBrowser, folder: Path) -> None:
        self.tools = BrowserTools(browser, Client(guard=Guard()), Walls(), folder / "kept")
        self._folder = folder
        self.held: Any = None

    async def __call__(
        self, tool: str, url: str, *, trusted: bool = True, bounds: LimitsSpec | None = None, **arguments: Any
    ) -> Any:
        ctx = Measuring(workdir=self._folder, origin=Origin(trusted=trusted, written={"url": url}), bounds=bounds)
        try:
            return await self.tools.execute(call_of(f"browser.{tool}", {"url": url, **arguments}), ctx)
        finally:
            self.held, self.used = ctx.seen.containment, ctx.seen


class Measuring(Context):
    """Keeps what was measured."""

    seen: Measured = Measured()

    def measured(self, used: Measured) -> None:
        """Keep it."""
        self.seen = used


async def test_an_upload_reaches_the_page_though_the_browser_cannot_read_it(
    browser: SharedBrowser, at: str, tmp_path: Path
) -> None:
    ask = Asking(browser, tmp_path)
    (tmp_path / "note.txt").write_text("from the workspace")
    actions = [
        {"upload": {"selector": "#file", "path": "note.txt"}},
        {"extract": {"name": "said", "selector": "#said"}},
    ]
    assert (await ask("act", at, actions=actions))["extracted"] == {"said": "from the workspace"}
    assert ask.held["level"] == "restricted"


@pytest.mark.parametrize("without", [(), ("cgroup",)])
async def test_a_browser_of_its_own_is_kept_to_the_memory_of_its_step(
    at: str, tmp_path: Path, without: tuple[str, ...]
) -> None:
    browser = SharedBrowser(uid=UID, without=without)
    ask = Asking(browser, tmp_path)
    assert (await ask("read", at, bounds=LimitsSpec(memory_bytes=900_000_000)))["title"] == "Shop"
    assert ask.held["level"] == "restricted"
    assert (ask.held["cgroup"] == "none") is (best_roots() is None or "cgroup" in without)
    for most in (120_000_000, 20_000_000):  # too little for a page, too little to start
        with pytest.raises(ToolError) as caught:
            await ask("read", at, bounds=LimitsSpec(memory_bytes=most), wait={"selector": "#never"})
        assert caught.value.code == "limit_memory"
    assert (browser.starts, browser._running) == (3, None)


async def test_a_browser_of_its_own_is_kept_to_the_cpu_time_of_its_step(at: str, tmp_path: Path) -> None:
    browser = SharedBrowser(uid=UID)
    ask = Asking(browser, tmp_path)
    assert (await ask("read", at, bounds=LimitsSpec(cpu_time_ms=Millis(60_000))))["title"] == "Shop"
    assert 0 < ask.used.cpu_s < 60
    assert ask.used.memory_peak_bytes > 0
    with pytest.raises(ToolError) as caught:
        await ask("read", f"{at}/busy", bounds=LimitsSpec(cpu_time_ms=Millis(4_000)), wait={"selector": "#never"})
    assert (caught.value.code, (caught.value.details or {})["limit"]) == ("limit_cpu", "cpu_time")
    assert ask.used.cpu_s > 4
    assert browser._running is None


async def test_a_browser_that_does_not_answer_is_given_up(
    at: str, browser: SharedBrowser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Asking(browser, tmp_path)
    assert (await ask("read", at))["title"] == "Shop"
    frozen = browser._running
    assert frozen is not None
    for one in frozen.processes():
        with suppress(psutil.NoSuchProcess):  # one that served the page which was just closed
            one.suspend()
    monkeypatch.setattr("everstep.adapters.browser.running.ANSWER_S", 0.1)
    with pytest.raises(ToolError, match="does not answer") as caught:
        await frozen.new_context(nowhere, {})
    assert (caught.value.code, frozen.old) == ("browser_crashed", True)
    monkeypatch.undo()
    assert (await ask("read", at))["title"] == "Shop", "the next one gets another"
    assert browser.starts == 2


async def test_an_answer_of_a_browser_that_was_killed_is_not_waited_for(browser: SharedBrowser) -> None:
    """Playwright keeps whoever asked for a page waiting for ever, if that is the moment."""
    async with browser.context(nowhere) as (_, running):
        asking = asyncio.ensure_future(running.answered(asyncio.Future()))
        await asyncio.to_thread(running.kill)
        with pytest.raises(ToolError, match="ended and did not answer") as caught:
            await asking
        assert (caught.value.code, running.old) == ("browser_crashed", True)


async def test_a_wall_that_is_lacking_is_named_and_a_stranger_refused(at: str, tmp_path: Path) -> None:
    browser = SharedBrowser(uid=UID, without=("seccomp",))
    ask = Asking(browser, tmp_path)
    assert (await ask("read", at))["title"] == "Shop"
    assert (ask.held["level"], ask.held["missing"]) == ("limited", ["seccomp"])
    with pytest.raises(ToolError, match="seccomp") as caught:
        await ask("read", at, trusted=False)
    assert caught.value.code == "containment_unavailable"
    assert browser.starts == 1
    await browser.close()


async def test_a_browser_that_does_not_start_in_namespaces_has_the_other_walls(
    at: str, ground: Path, tmp_path: Path
) -> None:
    program = ground / "browser"
    program.write_text(f'#!/bin/sh\n[ $$ -lt 20 ] && exit 1\nexec {SharedBrowser().found()} "$@"\n')
    program.chmod(0o755)
    browser = SharedBrowser(executable=str(program), uid=UID)
    ask = Asking(browser, tmp_path)
    assert (await ask("read", at))["title"] == "Shop"
    assert (ask.held["level"], ask.held["namespaces"], ask.held["network"]) == ("restricted", [], "proxy")
    await browser.close()


async def test_a_browser_that_does_not_start_behind_walls_runs_without_and_says_so(
    at: str, ground: Path, tmp_path: Path
) -> None:
    """Such as one that needs privileges to start at all."""
    program = ground / "browser"
    found = SharedBrowser().found()
    program.write_text(f"#!/bin/sh\ngrep -q 'NoNewPrivs:.*1' /proc/self/status && exit 1\nexec {found} \"$@\"\n")
    program.chmod(0o755)
    browser = SharedBrowser(executable=str(program), uid=UID)
    ask = Asking(browser, tmp_path)
    assert (await ask("read", at))["title"] == "Shop"
    lacking = ["uid"] * (os.getuid() == 0) + ["landlock", "seccomp", "network"]
    assert (ask.held["level"], ask.held["missing"], ask.held["network"]) == ("limited", lacking, "host")
    with pytest.raises(ToolError, match="landlock") as caught:
        await ask("read", at, trusted=False)
    assert caught.value.code == "containment_unavailable"
    await browser.close()
    assert not [one for one in tree(os.getpid()) if "chrom" in one.name()]
