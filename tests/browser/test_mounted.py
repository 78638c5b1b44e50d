"""The dashboard below a path of somebody's own app: nothing of it asks at the top, and its streams come through."""

import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from everstep import Engine, Plan, tool
from tests.browser.stage import watch


@tool.pure("own.double")
def double(n: int) -> int:
    """Twice as much."""
    return n * 2


async def home(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"our own page at {request.url.path}")


PLAN = Plan.from_dict(
    {
        "name": "doubling",
        "title": "Double it",
        "steps": [{"id": "two", "tool": "own.double", "with": {"n": 1}, "approve": {"title": "Really double it?"}}],
    }
)


@pytest.fixture
def served(built: None, tmp_path: Path) -> Iterator[str]:
    """An app of ours with the engine in its lifespan."""
    engine = Engine(tmp_path / "store.db", tools=[double])

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with engine:
            await engine.start(PLAN)
            yield

    app = Starlette(routes=[Route("/", home), Mount("/everstep", engine.asgi())], lifespan=lifespan)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, ws="websockets-sansio"))
    serving = threading.Thread(target=server.run)
    serving.start()
    try:
        while not server.started and serving.is_alive():
            serving.join(0.02)
        (port,) = {sock.getsockname()[1] for one in server.servers for sock in one.sockets}
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        serving.join(60)


def test_a_task_is_approved_below_a_path(served: str, tmp_path: Path, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    watch(page, complaints)
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    page.goto(f"{served}/everstep/")
    expect(page.get_by_label("Token or link")).to_be_visible()
    page.get_by_label("Token or link").fill((tmp_path / "store.token").read_text().strip())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("status").filter(has_text="live")).to_have_text("live")
    page.get_by_role("link", name="Review").click()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Answered by local (http)")).to_be_visible()
    page.get_by_role("link", name="Tasks", exact=True).click()
    expect(page.get_by_text("completed", exact=True)).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="Double it")).to_be_visible()
    assert {url.partition("://")[2].partition("/")[2].partition("/")[0] for url in asked} == {"everstep"}
    assert page.request.get(f"{served}/").text() == "our own page at /"
    context.close()
    assert complaints == []
