"""Pictures that browser steps take, seen in the dashboard: of a page, and of what it looked like when it went wrong."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.stage import Stage

PAGE = b"<title>Shop</title><h1 style='background: #0a0'>Open</h1><button>Buy</button>"


class Shop(BaseHTTPRequestHandler):
    """One page for everybody."""

    def do_GET(self) -> None:
        """Give it."""
        self.send_response(200)
        self.send_header("content-length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, format: str, *args: object) -> None:
        """Not here."""


@pytest.fixture
def shop() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def shooting(built: None, tmp_path: Path, shop: str) -> Iterator[Stage]:
    """A project with browser tools, and a plan of somebody trusted that names the shop."""
    one = Stage(tmp_path / "project")
    with (one.folder / "everstep.toml").open("a") as settings:
        settings.write("\n[browser]\nenabled = true\n")
    steps = [
        {"id": "shot", "tool": "browser.screenshot", "with": {"url": shop}, "timeout": "10m"},
        {
            "id": "buy",
            "tool": "browser.read",
            "needs": ["shot"],
            "with": {"url": shop, "wait": {"selector": "#nowhere"}},
            "timeout": "10m",
            "retry": 0,
        },
    ]
    (one.folder / "plans/shop.plan.yaml").write_text(json.dumps({"name": "shop", "steps": steps}))
    one.serve()
    yield one
    one.close()


@pytest.mark.req("Web.4")
def test_pictures_open_from_the_dashboard_and_a_failed_step_has_one(shooting: Stage, browser: Browser) -> None:
    task = shooting.start("shop")
    assert shooting.until(task, "failed", "completed")["status"] == "failed"
    added = [event for event in shooting.events(task) if event["type"] == "artifact.added"]
    assert [(one["step"], one["data"]["name"]) for one in added] == [("shot", "shot.png"), ("buy", "buy-failed.png")]
    for name in ("shot", "buy"):
        with shooting.page(browser, f"/tasks/{task}?step={name}&tab=output") as page:
            picture = page.get_by_role("img", name="The output as a picture")
            expect(picture).to_be_visible()
            page.wait_for_function("() => document.querySelector('.left img').naturalWidth === 1280")
            assert picture.evaluate(GREEN) is True


GREEN = """img => { const c = document.createElement('canvas'); c.width = c.height = 50;
  const g = c.getContext('2d'); g.drawImage(img, 0, 0); const [r, v, b] = g.getImageData(40, 40, 1, 1).data;
  return r < 20 && v > 100 && b < 20 }"""
