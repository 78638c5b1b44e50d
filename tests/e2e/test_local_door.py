"""The local door of a real engine on a real file: who may come in, what is said, what is refused."""

import asyncio
import json
import os
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest

from everstep import Engine
from everstep.domain.errors import EverstepError, Unavailable, Validation
from everstep.domain.values import JsonValue
from everstep.doors.local import host
from everstep.doors.local.client import LocalClient, find_engine
from everstep.doors.local.lines import actor_of, hang_up
from everstep.doors.local.place import LINE_BYTES_MAX, bind, make_private, read_lock, same_user
from everstep.settings import Settings, load_settings

PLAN: dict[str, JsonValue] = {
    "name": "join",
    "steps": [{"id": "a", "tool": "text.join", "with": {"texts": ["a", "b"]}}],
}
NAP: dict[str, JsonValue] = {"name": "nap", "steps": [{"id": "a", "tool": "wait", "with": {"for": "1h"}}]}


@pytest.fixture
def settings() -> Iterator[Settings]:
    with TemporaryDirectory(prefix="es-") as folder:  # sockets need short paths
        yield load_settings({"store": f"{folder}/state/everstep.db"}, cwd=Path(folder), env={})


@pytest.fixture
async def engine(settings: Settings) -> AsyncIterator[Engine]:
    async with Engine(config=settings) as opened:
        yield opened


@pytest.fixture
async def client(engine: Engine, settings: Settings) -> AsyncIterator[LocalClient]:
    found = await find_engine(settings)
    assert found is not None
    yield found
    await found.close()


async def good(client: LocalClient, method: str, path: str, body: JsonValue = None) -> dict[str, Any]:
    reply = await client.request(method, path, body)
    assert reply.status < 300, reply.body
    return cast("dict[str, Any]", reply.json())


async def raw(settings: Settings, *lines: bytes) -> list[dict[str, Any]]:
    """What is answered to these very bytes, until the other side hangs up or has answered each."""
    reader, writer = await asyncio.open_unix_connection(str(settings.socket_path))
    answers = []
    try:
        for line in lines:
            writer.write(line + b"\n")
            answer = await asyncio.wait_for(reader.readline(), 60)
            if not answer:
                break
            answers.append(json.loads(answer))
    except ConnectionError:
        pass
    finally:
        await hang_up(writer)
    return answers


# --- the socket ---


async def test_the_socket_is_the_owners_alone_and_named_in_the_lock(engine: Engine, settings: Settings) -> None:
    status = settings.socket_path.stat()
    assert stat.S_ISSOCK(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert settings.socket_path.name == "control.sock"
    lock = read_lock(settings.lock_path)
    assert (lock["socket"], lock["pid"]) == (str(settings.socket_path), os.getpid())
    assert set(lock) == {"pid", "host", "incarnation", "started_at", "command", "url", "socket", "version"}
    assert [one.name for one in settings.socket_path.parent.glob(".*.sock")] == []


async def test_the_socket_goes_with_the_engine(settings: Settings) -> None:
    async with Engine(config=settings):
        assert settings.socket_path.exists()
    assert not settings.socket_path.exists()
    assert await find_engine(settings) is None
    async with Engine(config=settings):
        client = await find_engine(settings)
        assert client is not None
        await client.close()


async def test_a_dead_engines_socket_is_replaced(settings: Settings) -> None:
    settings.socket_path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(settings.socket_path))
    assert await find_engine(settings) is None
    async with Engine(config=settings):
        client = await find_engine(settings)
        assert client is not None
        assert (await client.request("GET", "/v1/ready")).status == 200
        await client.close()


async def test_two_stores_in_one_folder_have_two_doors(tmp_path: Path) -> None:
    one, two = (load_settings({"store": str(tmp_path / name)}, env={}) for name in ("a.db", "b.db"))
    async with Engine(config=one), Engine(config=two):
        first, second = await find_engine(one), await find_engine(two)
        assert first is not None
        assert second is not None
        task = await good(first, "POST", "/v1/tasks", {"plan": PLAN})
        assert (await second.request("GET", f"/v1/tasks/{task['id']}")).status == 404
        await first.close()
        await second.close()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose name leaves room for a socket's, however deep the tests' own folders are."""
    with TemporaryDirectory(prefix="es-") as folder:
        yield Path(folder)


async def test_a_path_too_long_for_a_socket_moves_to_the_runtime_folder(tmp_path: Path, short: Path) -> None:
    store = tmp_path / ("x" * 120) / "everstep.db"
    settings = load_settings({"store": str(store)}, env={"XDG_RUNTIME_DIR": str(short)})
    async with Engine(config=settings):
        path = Path(str(read_lock(settings.lock_path)["socket"]))
        assert path.parent == short / "everstep"
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        client = await find_engine(settings)
        assert client is not None
        assert (await client.request("GET", "/v1/ready")).status == 200
        await client.close()


def test_a_runtime_folder_must_be_ours_alone(tmp_path: Path) -> None:
    make_private(tmp_path / "new")
    make_private(tmp_path / "new")
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "new")
    (tmp_path / "file").write_text("", encoding="utf-8")
    for name in ("open", "link"):
        with pytest.raises(Unavailable, match="not a folder of our own"):
            make_private(tmp_path / name)
    with pytest.raises(OSError, match="exists"):
        make_private(tmp_path / "file")


async def test_another_user_is_shown_the_door(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, writer = await asyncio.open_unix_connection(str(settings.socket_path))
    assert same_user(writer)
    await hang_up(writer)
    client = LocalClient(settings.socket_path)
    somebody_else = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody_else)
    with pytest.raises(Unavailable, match="nobody answers"):  # nor do we speak to somebody else's engine
        await client.request("GET", "/v1/health")
    assert await raw(settings, b'{"method":"GET","path":"/v1/health"}') == []


async def test_a_folder_that_takes_no_socket_is_a_typed_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Unavailable, match="cannot open the local door"):
        bind(tmp_path / "missing" / "control.sock")


# --- lines ---

HEALTH = b'{"method":"GET","path":"/v1/health"}'


@pytest.mark.parametrize(
    ("line", "status", "code"),
    [
        (b"not json", 400, "bad_request"),
        (b"[1]", 400, "bad_request"),
        (b'{"method":"GET"}', 400, "bad_request"),
        (b'{"method":1,"path":"/v1/health"}', 400, "bad_request"),
        (b'{"method":"GET","path":"/v1/health","headers":[]}', 400, "bad_request"),
        (b'{"method":"GET","path":"/v1/health","headers":{"everstep-actor":"root"}}', 400, "bad_request"),
        (b'{"method":"GET","path":"/v1/tasks?q=a&q=b"}', 400, "bad_request"),
        (b'{"method":"GET","path":"/v1/nothing"}', 404, "not_found"),
        (b'{"method":"PUT","path":"/v1/tasks"}', 405, "method_not_allowed"),
        (b'{"method":"GET","path":"/v1/tasks/t_zzzz/events"}', 404, "not_found"),
        (b'{"a":1,"a":2}', 400, "bad_request"),
        (b"\xff", 400, "bad_request"),
    ],
)
async def test_a_bad_line_is_refused_and_the_next_one_heard(
    engine: Engine, settings: Settings, line: bytes, status: int, code: str
) -> None:
    answers = await raw(settings, line, HEALTH)
    assert (answers[0]["status"], answers[0]["body"]["error"]["code"]) == (status, code)
    if b"/events" not in line:
        assert answers[1]["status"] == 200


async def test_a_line_without_end_is_refused(engine: Engine, settings: Settings) -> None:
    huge = b'{"method":"POST","path":"/v1/tasks","body":{"plan_text":"' + b"x" * LINE_BYTES_MAX + b'"}}'
    reader, writer = await asyncio.open_unix_connection(str(settings.socket_path))
    writer.write(huge + b"\n")
    answer = json.loads(await asyncio.wait_for(reader.readline(), 60))
    assert (answer["status"], answer["body"]["error"]["code"]) == (413, "too_large")
    await hang_up(writer)


async def test_more_callers_than_places_are_told_so(
    engine: Engine, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "CALLERS_MAX", 0)
    (answer,) = await raw(settings, HEALTH)
    assert (answer["status"], answer["body"]["error"]["code"]) == (503, "overloaded")
    assert answer["headers"]["retry-after"] == "1"


ACTORS = {
    None: ("human", "local", "cli"),
    "human:ana": ("human", "ana", "cli"),
    "llm:claude@mcp": ("llm", "claude", "mcp"),
    "human:ana@example.test": ("human", "ana@example.test", "cli"),
    "human:ana@example.test@http": ("human", "ana@example.test", "http"),
    "service:": ("service", "local", "cli"),
}


@pytest.mark.parametrize("said", ACTORS)
def test_the_actor_may_be_named(said: str | None) -> None:
    actor = actor_of(said, "local")
    assert (actor.kind.value, actor.id, actor.via) == ACTORS[said]


@pytest.mark.parametrize("said", ["root", "system:x", "human:" + "x" * 129, "human:a\nb"])
def test_a_made_up_actor_is_refused(said: str) -> None:
    with pytest.raises(Validation):
        actor_of(said, "local")


# --- talking ---


async def test_a_task_is_started_watched_and_read(client: LocalClient) -> None:
    task = await good(client, "POST", "/v1/tasks", {"plan": PLAN, "trusted": True})
    frames = [frame async for frame in client.stream(f"/v1/tasks/{task['id']}/events?after=0&until=end")]
    types = [frame["event"]["type"] for frame in frames if frame["type"] == "event"]
    assert (types[0], types[-1]) == ("task.created", "task.completed")
    done = await good(client, "GET", f"/v1/tasks/{task['id']}")
    assert (done["status"], done["created_by"]["via"]) == ("completed", "cli")
    page = await good(client, "GET", f"/v1/tasks/{task['id']}/events?limit=500")
    assert page["events"] == [frame["event"] for frame in frames if frame["type"] == "event"]


async def test_an_actor_leaves_its_name_in_the_journal(engine: Engine, settings: Settings) -> None:
    client = await find_engine(settings, actor="llm:claude@mcp")
    assert client is not None
    task = await good(client, "POST", "/v1/tasks", {"plan": NAP})
    assert task["created_by"] == {"kind": "llm", "id": "claude", "via": "mcp"}
    await client.close()


async def test_requests_on_one_line_do_not_mix(client: LocalClient) -> None:
    replies = await asyncio.gather(*(client.request("GET", f"/v1/tools/{name}") for name in ("wait", "ask", "zzz") * 5))
    assert [reply.status for reply in replies] == [200, 200, 404] * 5
    assert [reply.json().get("name") for reply in replies] == ["wait", "ask", None] * 5


async def test_a_refused_stream_is_raised(client: LocalClient) -> None:
    with pytest.raises(EverstepError) as refused:
        await anext(client.stream("/v1/tasks/t_zzzz/events"))
    assert refused.value.code == "not_found"


async def test_a_watcher_who_leaves_is_forgotten(client: LocalClient) -> None:
    task = await good(client, "POST", "/v1/tasks", {"plan": NAP})
    frames = cast("Any", client.stream(f"/v1/tasks/{task['id']}/events"))
    assert (await anext(frames))["type"] == "hello"
    await frames.aclose()
    assert (await good(client, "GET", "/v1/health"))["status"] == "ok"


async def test_a_watcher_who_speaks_is_not_cut_off(client: LocalClient, settings: Settings) -> None:
    task = await good(client, "POST", "/v1/tasks", {"plan": NAP})
    reader, writer = await asyncio.open_unix_connection(str(settings.socket_path))
    writer.write(json.dumps({"method": "GET", "path": f"/v1/tasks/{task['id']}/events?ticks=0"}).encode() + b"\n")
    assert json.loads(await reader.readline())["type"] == "hello"
    writer.write(b'{"type":"ping"}\n')
    await good(client, "POST", f"/v1/tasks/{task['id']}/cancel")
    async with asyncio.timeout(60):
        while b"task.cancelled" not in await reader.readline():
            pass
    await hang_up(writer)


async def test_an_engine_that_stops_says_good_bye_and_is_then_gone(settings: Settings) -> None:
    async with Engine(config=settings):
        client = await find_engine(settings)
        assert client is not None
        task = await good(client, "POST", "/v1/tasks", {"plan": NAP})
        frames = cast("Any", client.stream(f"/v1/tasks/{task['id']}/events?ticks=0"))
        while (await anext(frames))["type"] != "live":
            pass
    rest = [frame async for frame in frames]
    assert rest[-1]["type"] == "bye"
    with pytest.raises(Unavailable, match="nobody answers"):
        await client.request("GET", "/v1/health")
    with pytest.raises(Unavailable, match="nobody answers"):
        await anext(client.stream("/v1/tasks/t_1/events"))
    await client.close()


async def test_whoever_answers_must_be_the_one_the_lock_names(engine: Engine, settings: Settings) -> None:
    lock = read_lock(settings.lock_path)
    settings.lock_path.write_text(json.dumps({**lock, "incarnation": "w_other"}), encoding="utf-8")
    assert await find_engine(settings) is None
    settings.lock_path.write_text("torn", encoding="utf-8")
    assert read_lock(settings.lock_path) == {}
    assert await find_engine(settings) is None


async def test_somebody_who_does_not_answer_is_not_waited_for(settings: Settings) -> None:
    settings.socket_path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(settings.socket_path))
        deaf.listen()
        started = asyncio.get_running_loop().time()
        assert await find_engine(settings) is None
        assert asyncio.get_running_loop().time() - started < 5
