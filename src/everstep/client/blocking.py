"""BlockingClient: the same names without `await`. A loop in a thread of its own, and no logic."""

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from everstep.blocking import LoopThread
from everstep.client.remote import URL, Client, Json


class BlockingClient:
    """A served engine. `with BlockingClient(url, token=…) as client: …`."""

    def __init__(self, url: str = URL, *, token: str | None = None) -> None:
        self._client = Client(url, token=token)
        self._thread = LoopThread()

    def __enter__(self) -> Self:
        self._thread.wait(self._client.__aenter__())
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        try:
            self._thread.wait(self._client.close())
        finally:
            self._thread.close()

    def request(self, method: str, path: str, body: Json | None = None) -> Json:
        """Any route of the API."""
        return self._thread.wait(self._client.request(method, path, body))

    def create(self, *, key: str | None = None, **wish: Any) -> Json:  # noqa: ANN401 -- any field of the request
        """A durable task."""
        return self._thread.wait(self._client.create(key=key, **wish))

    def get(self, task: str, *, include: str | None = None) -> Json:
        """A task, by id or key."""
        return self._thread.wait(self._client.get(task, include=include))

    def list(self, *, cursor: str | None = None, limit: int | None = None, **filters: str) -> Json:
        """One page, newest first."""
        return self._thread.wait(self._client.list(cursor=cursor, limit=limit, **filters))

    def tasks(self, **filters: str) -> Iterator[Json]:
        """All tasks, newest first."""
        return self._thread.iterate(self._client.tasks(**filters))

    def pause(self, task: str, *, mode: str = "graceful", note: str | None = None) -> Json:
        """Ask for a pause."""
        return self._thread.wait(self._client.pause(task, mode=mode, note=note))

    def resume(self, task: str, *, note: str | None = None) -> Json:
        """Lift a pause that somebody asked for."""
        return self._thread.wait(self._client.resume(task, note=note))

    def cancel(self, task: str, *, note: str | None = None) -> Json:
        """End it."""
        return self._thread.wait(self._client.cancel(task, note=note))

    def retry(self, task: str, **wish: Any) -> Json:  # noqa: ANN401 -- any field of the request
        """The same task again, from a step."""
        return self._thread.wait(self._client.retry(task, **wish))

    def fork(self, task: str, **wish: Any) -> Json:  # noqa: ANN401 -- any field of the request
        """A new task that keeps results up to a step."""
        return self._thread.wait(self._client.fork(task, **wish))

    def undo(self, task: str, **wish: Any) -> Json:  # noqa: ANN401 -- any field of the request
        """A new task that takes back what this one did."""
        return self._thread.wait(self._client.undo(task, **wish))

    def patch(self, task: str, **wish: Any) -> Json:  # noqa: ANN401 -- any field of the request
        """Change the remaining plan."""
        return self._thread.wait(self._client.patch(task, **wish))

    def inbox(self, **filters: str) -> Json:
        """Open pauses, oldest first."""
        return self._thread.wait(self._client.inbox(**filters))

    def answer(self, pause: str, answer: str, **with_it: Any) -> Json:  # noqa: ANN401 -- JSON
        """Answer a pause."""
        return self._thread.wait(self._client.answer(pause, answer, **with_it))

    def events(
        self,
        task: str | None = None,
        after: int | str | None = None,
        *,
        types: str | None = None,
        until_end: bool = False,
    ) -> Iterator[Json]:
        """Events of one task, or of all: each once and in order, over cuts and restarts."""
        return self._thread.iterate(self._client.events(task, after, types=types, until_end=until_end))

    def frames(
        self,
        task: str | None = None,
        after: int | str | None = None,
        *,
        types: str | None = None,
        ticks: bool | None = None,
        until_end: bool = False,
    ) -> Iterator[Json]:
        """The stream as it is: snapshot, events, ticks, output, notices."""
        frames = self._client.frames(task, after, types=types, ticks=ticks, until_end=until_end)
        return self._thread.iterate(frames)
