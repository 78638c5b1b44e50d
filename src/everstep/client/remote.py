"""Client: the operations of a served engine, and streams that come back by themselves."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Any, Final, Self

from everstep.client import ways
from everstep.client.rules import Backoff, Frame, Hole, Ladder, LinePlace, TaskPlace, Way
from everstep.client.ways import Cut, Over, not_ours, path_of, query_of, refusal
from everstep.domain.errors import EngineClosed, EverstepError, Unavailable, Validation

Json = dict[str, Any]
URL: Final = "http://127.0.0.1:7717"
TIMEOUT_S: Final = 35.0


class Client:
    """A served engine. `async with Client(url, token=…) as client: …`."""

    def __init__(self, url: str = URL, *, token: str | None = None) -> None:
        if not url.startswith(("http://", "https://")):
            raise Validation(f"'{url}' is no address of an engine", what_to_do=f"as in {URL}")
        self._base = url.rstrip("/")
        self._headers: dict[str, str] = {} if token is None else {"authorization": f"Bearer {token}"}
        self._opened: Any = None

    async def __aenter__(self) -> Self:
        import httpx2

        self._opened = httpx2.AsyncClient(base_url=self._base, headers=self._headers, timeout=TIMEOUT_S)
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Hang up; closing twice is harmless."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()

    async def request(
        self, method: str, path: str, body: Json | None = None, *, headers: Mapping[str, str] | None = None
    ) -> Json:
        """Any route of the API: the reply's object; a refusal is raised as an `EverstepError` with its `code`."""
        import httpx2

        try:
            reply = await self._http.request(method, path, json=body, headers=dict(headers or {}))
        except httpx2.HTTPError as error:
            raise Unavailable(f"nobody answers at {self._base}: {error}", what_to_do="everstep serve") from error
        if reply.status_code >= 400:
            raise refusal(reply.status_code, reply.headers, reply.content)
        try:
            said = reply.json() if reply.content else {}
        except ValueError:
            said = None
        if reply.is_redirect or not isinstance(said, dict):
            raise not_ours(self._base)
        return said

    # Tasks

    async def create(self, *, key: str | None = None, **wish: Any) -> Json:  # noqa: ANN401 -- any field of the request
        """A durable task: `plan`, `plan_text` or `plan_name`, and `inputs`, `title`, `labels`, … as the API takes them.

        With a `key` it is safe to ask again after a lost reply: the same key is the same task.
        """
        named = None if key is None else {"idempotency-key": key}
        return await self.request("POST", path_of("tasks"), wish, headers=named)

    async def get(self, task: str, *, include: str | None = None) -> Json:
        """A task, by id or key."""
        return await self.request("GET", path_of("tasks", task) + query_of(include=include))

    async def list(self, *, cursor: str | None = None, limit: int | None = None, **filters: str) -> Json:
        """One page, newest first: `{items, next_cursor}`."""
        return await self.request("GET", path_of("tasks") + query_of(cursor=cursor, limit=limit, **filters))

    async def tasks(self, **filters: str) -> AsyncIterator[Json]:
        """All pages, task by task."""
        cursor: str | None = None
        while True:
            page = await self.list(cursor=cursor, limit=500, **filters)
            for item in page["items"]:
                yield item
            cursor = page["next_cursor"]
            if cursor is None:
                return

    async def pause(self, task: str, *, mode: str = "graceful", note: str | None = None) -> Json:
        """Ask for a pause."""
        return await self._act(task, "pause", mode=mode, note=note)

    async def resume(self, task: str, *, note: str | None = None) -> Json:
        """Lift a pause that somebody asked for."""
        return await self._act(task, "resume", note=note)

    async def cancel(self, task: str, *, note: str | None = None) -> Json:
        """End it."""
        return await self._act(task, "cancel", note=note)

    async def retry(self, task: str, **wish: Any) -> Json:  # noqa: ANN401 -- any field of the request
        """The same task again, from a step: `from_step`, `arguments`, `note`, `confirm_effects`, `dry_run`."""
        return await self._act(task, "retry", **wish)

    async def fork(self, task: str, **wish: Any) -> Json:  # noqa: ANN401 -- any field of the request
        """A new task that keeps results up to a step: `from_step`, `inputs`, `arguments`, `title`, `note`."""
        return await self._act(task, "fork", **wish)

    async def undo(self, task: str, **wish: Any) -> Json:  # noqa: ANN401 -- any field of the request
        """A new task that takes back what this one did: `steps`, `note`, `dry_run`."""
        return await self._act(task, "undo", **wish)

    async def patch(self, task: str, **wish: Any) -> Json:  # noqa: ANN401 -- any field of the request
        """Change the remaining plan: `base_revision`, `ops`, `note`, `dry_run`."""
        return await self.request("PATCH", path_of("tasks", task, "plan"), wish)

    async def _act(self, task: str, verb: str, **body: Any) -> Json:  # noqa: ANN401 -- JSON
        said = {name: value for name, value in body.items() if value is not None}
        return await self.request("POST", path_of("tasks", task, verb), said)

    # What waits for someone

    async def inbox(self, **filters: str) -> Json:
        """Open pauses, oldest first: `{items}`."""
        return await self.request("GET", path_of("inbox") + query_of(**filters))

    async def answer(self, pause: str, answer: str, **with_it: Any) -> Json:  # noqa: ANN401 -- JSON
        """Answer a pause; each entry of its `answers` names the answer and what goes with it."""
        return await self.request("POST", path_of("inbox", pause, "answer"), {"answer": answer, **with_it})

    # Streams

    async def events(
        self,
        task: str | None = None,
        after: int | str | None = None,
        *,
        types: str | None = None,
        until_end: bool = False,
    ) -> AsyncIterator[Json]:
        """Events of one task, or of all: each once and in order, over cuts and restarts.

        `after`: the last seq (for all tasks: the cursor) that was seen; a task's begin at its first one, those of all
        tasks with what happens next. Raises an `EverstepError` with the code `resync_required` where the journal no
        longer has that place.
        """
        begin = 0 if after is None and task is not None else after
        async with aclosing(self.frames(task, begin, types=types, until_end=until_end)) as frames:
            async for frame in frames:
                if frame["type"] == "event":
                    yield frame["event"]
                elif frame["type"] == "resync_required":
                    raise EverstepError(
                        "the journal no longer has the place to go on from",
                        code="resync_required",
                        what_to_do="read the task, then go on from its `seq`",
                        details={name: frame.get(name) for name in ("reason", "first_seq", "head_seq", "cursor")},
                    )

    async def frames(
        self,
        task: str | None = None,
        after: int | str | None = None,
        *,
        types: str | None = None,
        ticks: bool | None = None,
        until_end: bool = False,
    ) -> AsyncGenerator[Frame, None]:
        """The stream as it is: snapshot, events, ticks, output, notices. After a cut it goes on by itself.

        A `snapshot` with `reset` replaces everything that was known.
        """
        watch = _Watch(task, after, types=types, ticks=ticks, until_end=until_end)
        backoff, ladder = Backoff(), Ladder()
        while True:
            way = ladder.choose(time.monotonic())
            opened, wait_s = False, 0.0
            try:
                async with aclosing(self._try(way, watch)) as told:
                    async for frame in _patiently(told, ladder.patience_s(way, time.monotonic())):
                        if not opened:
                            opened = True
                            ladder.opened(way)
                            backoff.opened(time.monotonic())
                        if watch.place.takes(frame):
                            yield frame
            except Over:
                return
            except Hole:
                wait_s = backoff.cut(time.monotonic(), random.random())  # noqa: S311 -- jitter
            except Cut as cut:
                if not opened:
                    ladder.failed(way, time.monotonic())
                wait_s = backoff.cut(time.monotonic(), random.random(), cut.retry_after_s)  # noqa: S311 -- jitter
            await asyncio.sleep(wait_s)

    def _try(self, way: Way, watch: "_Watch") -> AsyncGenerator[Frame, None]:
        tries: dict[Way, Callable[[], AsyncGenerator[Frame, None]]] = {
            "websocket": lambda: ways.websocket(self._base, self._headers, watch),
            "sse": lambda: ways.server_sent(self._http, watch),
            "poll": lambda: ways.poll(self._http, watch),
        }
        return tries[way]()

    @property
    def _http(self) -> Any:  # noqa: ANN401 -- imported when needed
        if self._opened is None:
            raise EngineClosed("the client is not open", what_to_do="use it in `async with Client(…) as client`")
        return self._opened


class _Watch:
    """What is watched, and how far it has come."""

    def __init__(
        self,
        task: str | None,
        after: int | str | None,
        *,
        types: str | None,
        ticks: bool | None,
        until_end: bool,
    ) -> None:
        self.path = path_of("events") if task is None else path_of("tasks", task, "events")
        self.place: TaskPlace | LinePlace
        if task is None:
            self.place = LinePlace(None if after is None else str(after), dense=types is None)
        else:
            self.place = TaskPlace(None if after is None else int(after), dense=types is None)
        self.until_end = until_end and task is not None
        self._asked = {"types": types, "ticks": ticks, "until": "end" if self.until_end else None}

    @property
    def after(self) -> int | str | None:
        return self.place.after

    def query(self, **more: object) -> str:
        return query_of(**{**self._asked, **more})


async def _patiently(frames: AsyncGenerator[Frame, None], patience_s: float | None) -> AsyncIterator[Frame]:
    """The same; after so long it is cut, to try a better way."""
    until = None if patience_s is None else asyncio.get_running_loop().time() + patience_s
    while True:
        try:
            async with asyncio.timeout_at(until):
                frame = await anext(frames)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise Cut("another way may be better", 0.0) from None
        yield frame
