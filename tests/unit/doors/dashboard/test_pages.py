"""The dashboard's files: what is open without a token, how it may be kept, and what a browser may do with it."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from everstep.doors.dashboard import Pages
from everstep.doors.http.answer import Message


@pytest.fixture
def static(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(
        '<meta name="everstep-at" content="./"><script src="./assets/a-1.js"></script>'
    )
    (tmp_path / "assets/a-1.js").write_text("1")
    (tmp_path / "build.json").write_text("{}")
    return tmp_path


async def ask(pages: Pages, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    said: list[Message] = []

    async def send(message: Message) -> None:
        said.append(message)

    async def receive() -> Message:
        raise AssertionError("a page is asked for without a body")

    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope: dict[str, Any] = {"type": "http", "path": path, "headers": lines, "root_path": ""}
    await pages(scope, receive, send)
    return said[0]["status"], {name.decode(): value.decode() for name, value in said[0]["headers"]}, said[1]["body"]


@pytest.mark.parametrize("path", ["/", "/inbox", "/inbox/p_1", "/tasks/t_1", "/plans", "/plans/x", "/health", "/stats"])
async def test_every_place_is_the_same_document(static: Path, path: str) -> None:
    pages = Pages(static)
    assert pages.holds(path)
    status, headers, body = await ask(pages, path)
    assert status == 200
    assert b'content="/"' in body
    assert b'src="/assets/a-1.js"' in body
    assert headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "path", ["/v1/tasks", "/tasks", "/tasks/a/b", "/build.json", "/../x", "/assets/", "//", "/%2e%2e/"]
)
def test_nothing_else_is_open(static: Path, path: str) -> None:
    assert not Pages(static).holds(path)


async def test_files_named_by_their_content_are_kept_for_ever(static: Path) -> None:
    status, headers, body = await ask(Pages(static), "/assets/a-1.js", accept_encoding="gzip, br")
    assert status == 200
    assert "immutable" in headers["cache-control"]
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == b"1"


async def test_the_policy_lets_a_page_run_its_own_files_only(static: Path) -> None:
    _, headers, _ = await ask(Pages(static), "/")
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'; trusted-types everstep" in policy
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"


async def test_what_is_not_built_says_how_it_is(tmp_path: Path) -> None:
    status, headers, body = await ask(Pages(tmp_path / "none"), "/tasks/t_1")
    assert status == 503
    assert headers["content-type"].startswith("text/plain")
    assert body == (
        b"The dashboard is not built here. Run `python scripts/build_dashboard.py`, then reload. The API works.\n"
    )
