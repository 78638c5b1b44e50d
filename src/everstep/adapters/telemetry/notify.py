"""Telling somebody: a command with JSON on its stdin, a webhook. Each occasion once, in order, from its own thread.

Whoever is told may be slow or gone: nothing of the engine waits for them, what does not fit the queue is left out, and
the log says what went wrong.
"""

import asyncio
import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from queue import SimpleQueue
from typing import Any, Final

from everstep.domain import events as e
from everstep.domain.pauses import PauseType
from everstep.ports.sink import Sink
from everstep.ports.store import Journaled
from everstep.settings.notify import CANCELLED, COMPLETED, FAILED, NEEDS_YOU, NotifySettings

TIMEOUT_S: Final = 30.0
CLOSE_S: Final = 5.0
WAITING_MAX: Final = 1000
_BY_TYPE: Final = {
    e.PauseOpened.TYPE: NEEDS_YOU,
    e.StepFailed.TYPE: FAILED,
    e.TaskFailed.TYPE: FAILED,
    e.TaskCompleted.TYPE: COMPLETED,
    e.TaskCancelled.TYPE: CANCELLED,
}
_NOBODY: Final = frozenset({PauseType.USER_REQUESTED.value, "resourcePressure"})
"""Pauses that somebody asked for, or that end by themselves."""


def occasion_of(event: Mapping[str, Any]) -> str | None:
    """What somebody may want to hear of; a task that fails because of a step was told of with the step."""
    kind, data = event["type"], event.get("data") or {}
    if kind == e.PauseOpened.TYPE and data.get("reason", {}).get("type") in _NOBODY:
        return None
    of_item = kind == e.StepFailed.TYPE and "[" in (event.get("step") or "")
    told_before = kind == e.TaskFailed.TYPE and (data.get("error") or {}).get("step") is not None
    return None if of_item or told_before else _BY_TYPE.get(kind)


def message_of(occasion: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """What is sent: enough for a line, and the whole event."""
    data = event.get("data") or {}
    error = data.get("error") or {}
    text = data.get("title") or error.get("message") or event["type"]
    return {"on": occasion, "task": event["task"], "step": event.get("step"), "text": text, "event": event}


class Notifier:
    """Answers `Telemetry`."""

    def __init__(self, settings: NotifySettings, sink: Sink) -> None:
        self._settings = settings
        self._sink = sink
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="everstep-notify", daemon=True)
        self._thread.start()

    def told(self, events: Sequence[Journaled]) -> None:
        """Those that are an occasion are queued."""
        for journaled in events:
            if journaled.type in _BY_TYPE:
                event = json.loads(journaled.encoded)
                occasion = occasion_of(event)
                if occasion in self._settings.on and self._queue.qsize() < WAITING_MAX:
                    self._queue.put(json.dumps(message_of(occasion, event)).encode())

    def missed(self) -> None:
        """They can still be found: `everstep inbox`, `everstep logs --errors`."""
        self._sink.note("some occasions went by untold: too much at once", level="warning")

    async def close(self) -> None:
        """Tell what is left."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join, CLOSE_S)

    # --- in the thread ---

    def _work(self) -> None:
        while (message := self._queue.get()) is not None:
            try:
                self._tell(message)
            except (OSError, subprocess.SubprocessError, ValueError) as error:
                self._sink.trouble("nobody could be told", error)

    def _tell(self, message: bytes) -> None:
        settings = self._settings
        if settings.command:
            subprocess.run(  # noqa: S603 -- the operator's own command
                settings.command, input=message, timeout=TIMEOUT_S, check=True, capture_output=True
            )
        if settings.webhook:
            import urllib.request

            request = urllib.request.Request(  # noqa: S310 -- the operator's own address
                settings.webhook, data=message, headers={"content-type": "application/json"}, method="POST"
            )
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:  # noqa: S310 -- as above
                reply.read(1024)
