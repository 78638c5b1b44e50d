"""`browser.*` with the system's Chromium, against pages of this process: slow, broken, hostile, late."""

import asyncio
import os
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import pytest

from everstep import Plan, Result
from everstep.adapters.browser import acting
from everstep.adapters.browser import page as pages
from everstep.adapters.browser.running import Running
from everstep.adapters.browser.shared import SharedBrowser
from everstep.adapters.isolation.bounds import Walls
from everstep.adapters.net import Client
from everstep.adapters.net.guard import Guard
from everstep.adapters.tools.browser import BrowserTools
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Origin, ToolError
from everstep.testing import TestEngine
from everstep.testing.context import Context, call_of
from tests.ports import free_port

LOAD_S = pages.LOAD_S
UID = 61185
FORM = """<title>Form</title><h1>Order</h1><p>Fill <a href="/next">this</a> in.</p><ul><li>one<li>two</ul>
<input id=name><input type=password id=secret value=hunter2><select id=size><option>S<option>L</select>
<button id=save onclick="document.body.append(Object.assign(document.createElement('p'), {id: 'saved',
  textContent: document.querySelector('#name').value + ' ' + document.querySelector('#size').value}))">Save</button>"""
LATE = """<div id=all></div><script>setTimeout(() => document.querySelector('#all').innerHTML =
  '<button id=late disabled>Go</button>', 300); setTimeout(() => document.querySelector('#late').disabled = false, 700)
</script>"""
POPUPS = "<script>for (let i = 0; i < 30; i++) window.open('/form')</script><p>still here"
SHOP = """<title>Shop</title><button id=off disabled>Off</button><button id=buy onclick="fetch('/buy', {method: 'POST'})
  .then(() => document.body.append(Object.assign(document.createElement('p'), {id: 'bought'})))">Buy</button>"""
BOUGHT: list[str] = []
"""What was bought on that page."""
SEEN = asyncio.Event()
"""Whether somebody has come to a page that answers only the second time."""
Served: TypeAlias = dict[str, tuple[int, str, str]]
PAGES: Served = {
    "/form": (200, FORM, ""),
    "/late": (200, LATE, ""),
    "/popups": (200, POPUPS, ""),
    "/huge": (200, "<p>" + "word " * 400_000, ""),
    "/once": (200, "<title>At last</title>", ""),
    "/gone": (404, "no", ""),
    "/busy": (503, "later", ""),
    "/shop": (200, SHOP, ""),
    "/cookie": (200, "<p id=c></p><script>document.querySelector('#c').textContent = document.cookie</script>", "x"),
    "/inward": (200, "<img src='http://169.254.169.254/x'><img src='http://127.0.0.1:1/'><p>read", ""),
}


@pytest.fixture(autouse=True)
def nobody_yet() -> None:
    """An event belongs to one loop, and so to one test."""
    global SEEN  # noqa: PLW0603
    SEEN = asyncio.Event()
    BOUGHT.clear()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    path = head.split(b" ")[1].decode()
    if path == "/slow" or (path == "/once" and not SEEN.is_set()):
        SEEN.set()
        await asyncio.sleep(600)
    if path == "/buy":
        BOUGHT.append(path)
    status, body, cookie = PAGES.get(path, (404, "", ""))
    set_cookie = "set-cookie: mark=kept\r\n" if cookie else ""
    raw = body.encode()
    writer.write(f"HTTP/1.1 {status} X\r\ncontent-type: text/html\r\n{set_cookie}".encode())
    writer.write(f"content-length: {len(raw)}\r\nconnection: close\r\n\r\n".encode() + raw)
    await writer.drain()


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[int]:
    """The port of the pages; nothing of them is left afterwards."""
    talks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        talks.add(talk)
        with suppress(OSError, asyncio.IncompleteReadError):
            try:
                await answer(reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, **options)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for talk in talks:
        talk.cancel()
    await asyncio.gather(*talks, return_exceptions=True)


@pytest.fixture
async def at() -> AsyncIterator[str]:
    async with served() as port:
        yield f"http://127.0.0.1:{port}"


class Ask:
    """Calls, and what they leave behind."""

    def __init__(self, tools: BrowserTools, folder: Path) -> None:
        self.artifacts: list[tuple[str, bytes]] = []
        self._tools, self._folder = tools, folder

    async def __call__(self, tool: str, url: str, *, trusted: bool = True, **arguments: Any) -> Any:
        origin = Origin(trusted=trusted, written={"url": url})
        ctx = Context(workdir=self._folder, origin=origin, artifacts=self.artifacts)
        return await self._tools.execute(call_of(f"browser.{tool}", {"url": url, **arguments}), ctx)


@pytest.fixture
async def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Ask, SharedBrowser]]:
    """Calls of one worker's browser, as if a trusted plan had written the address out."""
    monkeypatch.setattr(pages, "LOAD_S", 60.0)
    monkeypatch.setattr(pages, "ACTION_S", 60.0)
    shared = SharedBrowser(uid=UID)
    tools = BrowserTools(shared, Client(guard=Guard()), Walls(), tmp_path / "kept")

    yield Ask(tools, tmp_path), shared
    await tools.close()


async def refused(work: Awaitable[Any]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await work
    return caught.value


async def test_pages_are_read_acted_on_and_pictured(
    browser: tuple[Ask, SharedBrowser], at: str, tmp_path: Path
) -> None:
    ask, shared = browser
    read = await ask("read", f"{at}/form", format="markdown")
    assert (read["title"], read["status"], read["final_url"]) == ("Form", 200, f"{at}/form")
    assert "# Order" in read["text"]
    assert f"[this]({at}/next)" in read["text"]
    assert "- two" in read["text"]
    assert read["links"] == [{"text": "this", "url": f"{at}/next"}]
    plain = await ask("read", f"{at}/huge")
    assert plain["truncated"]
    actions = [
        {"fill": {"selector": "#name", "text": "Anna"}},
        {"select": {"selector": "#size", "value": "L"}},
        {"click": "#save"},
        {"wait": {"selector": "#saved"}},
        {"extract": {"name": "said", "selector": "#saved"}},
        {"extract": {"name": "items", "selector": "li", "all": True}},
    ]
    acted = await ask("act", f"{at}/form", actions=actions)
    assert acted["extracted"] == {"said": "Anna L", "items": ["one", "two"]}
    image = await ask("screenshot", f"{at}/form", area="full")
    assert (image["artifact"]["name"], image["artifact"]["media_type"]) == ("step.png", "image/png")
    assert (ask.artifacts[-1][1][:4], image["url"]) == (b"\x89PNG", f"{at}/form")
    kept = await ask("screenshot", f"{at}/form", area={"selector": "h1"}, format="jpeg", path="shots/h1.jpg")
    assert kept["path"] == "shots/h1.jpg"
    assert (tmp_path / "shots/h1.jpg").read_bytes().startswith(b"\xff\xd8")
    assert "still here" in (await ask("read", f"{at}/popups"))["text"]
    assert shared.starts == 1


@pytest.mark.req("Web.3")
async def test_waiting_for_elements(
    browser: tuple[Ask, SharedBrowser], at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, _ = browser
    late = await ask("read", f"{at}/late", wait={"selector": "#late", "state": "enabled"})
    assert "Go" in late["text"]
    assert "Go" in (await ask("read", f"{at}/late", wait={"text": "Go"}))["text"]
    monkeypatch.setattr(pages, "ACTION_S", 0.3)
    error = await refused(ask("read", f"{at}/form", wait={"selector": "#nowhere"}))
    assert (error.code, error.category, error.effect_state) == ("browser_element", "logic", "none")
    assert "#nowhere" in str(error)
    assert "button#save Save" in str(error)
    assert error.details is not None
    assert ask.artifacts[-1][0] == "step-failed.png"
    assert ask.artifacts[-1][1].startswith(b"\x89PNG")


@pytest.mark.req("Web.2", "6.2")
async def test_trouble_on_the_way_is_told_apart(
    browser: tuple[Ask, SharedBrowser], at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, _ = browser
    assert LOAD_S == 10.0
    with pytest.raises(pages.PageStatus) as gone:
        await ask("read", f"{at}/gone")
    assert gone.value.status_code == 404
    assert (await refused(ask("read", f"http://127.0.0.1:{free_port()}/"))).code == "net_refused"
    assert (await refused(ask("read", "http://127.0.0.1:9/"))).code == "policy_denied"
    assert (await refused(ask("read", "http://no-such-host.invalid/"))).code in {"net_host", "net_dns"}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(tmp_path))
    async with served(ssl=context) as port:
        assert (await refused(ask("read", f"https://127.0.0.1:{port}/form"))).code == "net_tls"
    monkeypatch.setattr(pages, "LOAD_S", 0.3)
    assert (await refused(ask("read", f"{at}/slow"))).code == "net_read"


def certificate(folder: Path) -> tuple[Path, Path]:
    """One that nobody trusts."""
    key, cert = folder / "key.pem", folder / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*words, "-keyout", key, "-out", cert], check=True, capture_output=True, timeout=60)
    return cert, key


async def test_nothing_is_reached_that_the_guard_refuses(browser: tuple[Ask, SharedBrowser], at: str) -> None:
    """Not by an address from data, not by what a page loads, not by a script of another scheme."""
    ask, _ = browser
    for url in ("http://169.254.169.254/latest", "http://[::1]:1/", "http://10.0.0.1:1/"):
        assert (await refused(ask("read", url, trusted=False))).code == "policy_denied"
    assert (await refused(ask("read", "http://169.254.169.254/latest"))).code == "policy_denied"
    for url in ("file:///etc/passwd", "chrome://version", "view-source:http://a/", "http://127.1/", "http://a@b/"):
        assert (await refused(ask("read", url))).code == "net_url"
    assert "read" in (await ask("read", f"{at}/inward"))["text"]


async def test_a_killed_browser_is_named_and_replaced(browser: tuple[Ask, SharedBrowser], at: str) -> None:
    ask, shared = browser
    await ask("read", f"{at}/form")
    waiting = asyncio.ensure_future(ask("read", f"{at}/once"))
    await SEEN.wait()
    assert shared._running is not None
    shared._running.kill()
    error = await refused(waiting)
    assert (error.code, error.category, error.effect_state) == ("browser_crashed", "transient", "unknown")
    assert (await ask("read", f"{at}/form"))["title"] == "Form"
    assert shared.starts == 2


def config_of(tmp_path: Path) -> JsonObject:
    """As many pages as one likes: the clock stands still."""
    return {"browser.enabled": True, "store": str(tmp_path / "s.db"), "rates": {"browser": "1000/1s:1000"}}


@pytest.mark.req("Web.1", "TI.2")
async def test_thirty_tasks_leave_no_process_and_the_browser_is_exchanged(
    tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everstep.adapters.browser.shared.CONTEXTS_MAX", 12)
    before = {one.pid for one in psutil.Process().children(recursive=True)}
    plan = Plan("pages")
    plan.step("read", "browser.read", {"url": f"{at}/form"}, timeout="10m")
    async with TestEngine([], config=config_of(tmp_path), workspace=tmp_path) as engine:
        tasks = [await engine.start(plan) for _ in range(30)]
        results: list[Result] = [await task.result() for task in tasks]
        assert {result.status for result in results} == {"completed"}, [result.error for result in results]
        assert engine._parts is not None
        tools: Any = engine._parts.runtime.kit.catalog.get("browser.read").adapter
        assert 3 <= tools._browser.starts <= 4
    assert {one.pid for one in psutil.Process().children(recursive=True)} <= before


@pytest.mark.req("Web.1")
async def test_a_step_whose_browser_is_killed_is_tried_again(tmp_path: Path, at: str) -> None:
    plan = Plan("pages")
    page = plan.step("read", "browser.read", {"url": f"{at}/once"}, timeout="10m")
    plan.output(title=page.title)
    async with TestEngine([], config=config_of(tmp_path), workspace=tmp_path) as engine, asyncio.timeout(200):
        task = await engine.start(plan)
        await SEEN.wait()
        assert engine._parts is not None
        tools: Any = engine._parts.runtime.kit.catalog.get("browser.read").adapter
        tools._browser._running.kill()
        retried = (event async for event in task.events() if event.type == "step.retry_scheduled")
        assert (await anext(retried)).data["attempt"] == 1
        await engine.clock.advance("30s")
        assert (await task.result()).outputs == {"title": "At last"}
        assert tools._browser.starts == 2


@pytest.mark.req("Web.2")
@pytest.mark.parametrize("then", ["/busy", "nobody", "memory", "off", "missing"])
async def test_what_was_done_on_a_page_is_not_done_again_because_of_what_follows(
    tmp_path: Path, at: str, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is busy, refuses, or a browser that grows too large would each be tried again by itself."""
    monkeypatch.setattr(pages, "ACTION_S", 3.0)
    if then == "memory":
        monkeypatch.setattr(Running, "memory", lambda _: 10**12 if BOUGHT else 0)
    last: dict[str, JsonObject] = {
        "/busy": {"goto": f"{at}/busy"},
        "nobody": {"goto": f"http://127.0.0.1:{free_port()}/"},
        "memory": {"wait": {"selector": "#never"}},
        "off": {"click": "#off"},
        "missing": {"click": "#nowhere"},
    }
    actions: list[JsonValue] = [{"click": "#buy"}, {"wait": {"selector": "#bought", "state": "attached"}}, last[then]]
    plan = Plan("shop")
    limits = {"memory": "900MB"} if then == "memory" else None
    plan.step("buy", "browser.act", {"url": f"{at}/shop", "actions": actions}, timeout="10m", limits=limits)
    config: JsonObject = {**config_of(tmp_path), "containment": {"require": {"browser": {"act": "limited"}}}}
    async with TestEngine([], config=config, workspace=tmp_path) as engine, asyncio.timeout(200):
        task = await engine.start(plan)
        ended = asyncio.ensure_future(task.result(on_pause="return"))
        while not ended.done():
            await engine.clock.advance("1s")
            await asyncio.sleep(0.05)
        failed = [one.data["effect_state"] async for one in task.events(follow=False) if one.type == "attempt.failed"]
        assert (ended.result().status, failed, len(BOUGHT)) == ("failed", ["made"], 1)


@pytest.mark.parametrize(("action", "effect"), [({"click": "#off"}, "none"), ({"click": "#nowhere"}, "none")])
async def test_a_deed_that_could_not_begin_was_not_made(
    browser: tuple[Ask, SharedBrowser], at: str, action: JsonObject, effect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "READY_S", 1.0)
    error = await refused(browser[0]("act", f"{at}/shop", actions=[action]))
    assert (error.code, error.effect_state) == ("browser_element", effect)


async def test_cookies_are_kept_within_a_task_and_not_beyond(tmp_path: Path, at: str) -> None:
    """Through the engine, three at a time."""
    config = config_of(tmp_path)
    async with TestEngine([], config=config, workspace=tmp_path) as engine:
        plan = Plan("pages")
        plan.step("first", "browser.read", {"url": f"{at}/cookie", "session": "mine"}, timeout="10m")
        plan.step("again", "browser.read", {"url": f"{at}/cookie", "session": "mine"}, timeout="10m")
        plan.output(again=plan.expr("again.text"))
        tasks = [await engine.start(plan) for _ in range(4)]
        results: list[Result] = [await task.result() for task in tasks]
        assert {result.status for result in results} == {"completed"}, [result.error for result in results]
        assert {str((result.outputs or {})["again"]).strip() for result in results} == {"mark=kept"}
        (event, *_) = [one async for one in tasks[0].events(follow=False) if one.type == "step.completed"]
        usage: Any = event.data["usage"]
        held = usage["containment"]
        assert (held["level"], held["network"]) == ("restricted", "proxy")
        assert held["uid"] == (UID if os.getuid() == 0 else os.getuid())  # another one than that of programs
        assert usage["bytes_in"] > 0


async def test_off_unless_enabled(tmp_path: Path) -> None:
    async with TestEngine([], workspace=tmp_path) as engine:
        assert engine._parts is not None
        assert engine._parts.runtime.kit.catalog.find("browser.read") is None
