"""`engine.asgi()`: before the engine is open and after, below a path, and as an app of its own."""

from pathlib import Path
from typing import Any

from everstep import Engine
from everstep.doors.embedded import relative


async def asked(app: Any, path: str, root: str = "", **headers: str) -> tuple[int, bytes]:
    """What the app says to one request."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    said = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
    scope = {
        "type": "http", "method": "GET", "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": root,
        "query_string": b"", "headers": said,
    }  # fmt: skip
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(one.get("body", b"") for one in sent[1:])


async def test_it_answers_while_the_engine_is_open_and_says_so_while_it_is_not(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "store.db")
    app = engine.asgi()
    assert engine.asgi() is app
    status, body = await asked(app, "/everstep/v1/health", "/everstep")
    assert status == 503
    assert b"not_ready" in body
    for _ in range(2):  # opened again it answers again
        async with engine:
            status, body = await asked(app, "/everstep/v1/health", "/everstep")
            assert (status, b'"ready":true' in body) == (200, True)
            assert (await asked(app, "/v1/tasks"))[0] == 401
            token = (tmp_path / "store.token").read_text().strip()
            assert (await asked(app, "/v1/tasks", authorization=f"Bearer {token}"))[0] == 200
            assert (await asked(app, "/v1/tasks", host="evil.test", authorization=f"Bearer {token}"))[0] == 421
        assert (await asked(app, "/v1/health"))[0] == 503


def test_below_a_mount_everything_is_as_at_the_top() -> None:
    for path, root in (("/a/v1/x%2Fy", "/a"), ("/v1/x%2Fy", ""), ("/v1/x%2Fy", "/a")):
        found = relative({"path": path, "raw_path": path.encode(), "root_path": root})
        assert (found["path"], found["raw_path"]) == ("/v1/x%2Fy", b"/v1/x%2Fy")
    assert relative({"path": "/a", "raw_path": b"/a", "root_path": "/a"})["path"] == "/"


async def test_as_an_app_of_its_own_it_is_told_when_it_begins_and_ends() -> None:
    said = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent: list[str] = []

    async def receive() -> dict[str, Any]:
        return next(said)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])

    await Engine().asgi()({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
