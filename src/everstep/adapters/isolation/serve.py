"""One function in a process of its own: reads the call, makes it, answers in JSON. `process_call` starts it."""

import inspect
import json
import os
import runpy
import sys
import time
import traceback
from base64 import b64encode
from collections.abc import Awaitable, Callable, Generator
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

from everstep.domain.handles import Artifact, media_type_of
from everstep.domain.ids import Digest, Instant, StepPath, TaskId
from everstep.domain.plan import LimitsSpec
from everstep.domain.raised import plain_details, text_of
from everstep.domain.usage import Measured
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.function import Function
from everstep.ports.tool import Misconfigured, NeedsInput, Origin, ToolError

STOPPED = 75
"""How it ends when the engine says that it must not go on."""


def serve_in(order: dict[str, Any]) -> None:
    """Walls stand: make the call here, as in an interpreter of its own."""
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv[:] = [order["argv"][0]]
    main()


def main() -> None:
    """The one call."""
    order = json.loads(sys.stdin.buffer.readline())
    said = Said(int(os.environ.pop("EVERSTEP_ANSWER")))
    sys.path[:0] = [path for path in order["path"] if path not in sys.path]
    try:
        served = found(order)
        arguments = {**order["arguments"]}
        arguments |= {name: load(arguments[name]) for name, load in served.loads if name in arguments}
        if served.takes_ctx:
            arguments["ctx"] = ChildCtx(order["ctx"], said)
        result = served.call(**arguments)
        if inspect.isawaitable(result):
            import asyncio  # half of what a start costs, and most functions await nothing

            result = asyncio.run(_awaited(result))
        said.say("result", result if served.dump is None else served.dump(result))
    except NeedsInput as asked:
        said.say("asked", {"question": str(asked), "schema": asked.schema, "by": asked.by})
    except ToolError as error:
        said.say("failed", _told(error))
    except Exception as error:  # noqa: BLE001 -- whatever a tool raises is told to the engine, which judges it
        said.say("raised", _raised(error))


async def _awaited(result: Any) -> Any:
    return await result


def found(order: dict[str, Any]) -> Function:
    """The function, imported here."""
    if order["module"] == "__main__":
        value: Any = runpy.run_path(order["file"], run_name="__everstep_child__")[order["name"]]
    else:
        value = import_module(order["module"])
        for part in order["name"].split("."):
            value = getattr(value, part)
    served = value.served
    assert isinstance(served, Function)
    return served


def _told(error: ToolError) -> dict[str, Any]:
    return {
        "category": error.category,
        "code": error.code,
        "message": text_of(error),
        "what_to_do": error.what_to_do,
        "details": plain_details(error.details),
        "effect_state": error.effect_state,
        "retry_after": error.retry_after if isinstance(error.retry_after, str | int | float) else None,
    }


def _raised(error: Exception) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    at = frames[-1] if frames else None
    place = "" if at is None else f" ({PurePath(at.filename).name}:{at.lineno})"
    args = [arg for arg in error.args if isinstance(arg, str | int | float | None)]
    known = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return {"type": known, "args": args, "text": f"{type(error).__name__}: {text_of(error)}{place}"}


class Said:
    """The way back: one JSON object per line."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def say(self, what: str, value: object) -> None:
        """One line."""
        try:
            line = json.dumps({what: value}, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            line = json.dumps({"invalid": str(error)})
        left = memoryview(line.encode() + b"\n")
        while left:
            left = left[os.write(self._descriptor, left) :]


class ChildLog:
    """Lines on their way to the engine's log."""

    def __init__(self, said: Said) -> None:
        self._said = said

    def info(self, text: str, **fields: JsonValue) -> None:
        """Worth knowing."""
        self._said.say("log", {"text": text, "fields": fields})

    def warning(self, text: str, **fields: JsonValue) -> None:
        """Worth a look."""
        self._said.say("log", {"text": text, "fields": {**fields, "level": "warning"}})


class Kept:
    """What awaiting has nothing to wait for."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class ChildCtx:
    """The `ctx` of a call in a process of its own."""

    def __init__(self, facts: dict[str, Any], said: Said) -> None:
        self._said = said
        self.task_id, self.step_id = TaskId(facts["task_id"]), StepPath(facts["step_id"])
        self.attempt, self.owner = int(facts["attempt"]), str(facts["owner"])
        self.workdir = Path(facts["workdir"])
        self.idempotency_key: str = facts["idempotency_key"]
        self.answer: JsonValue = facts["answer"]
        self.cursor: JsonValue = facts["cursor"]
        self.deadline = datetime.fromtimestamp(facts["deadline"], UTC)
        self.cancelled = False
        self.log = ChildLog(said)
        self.origin = Origin(trusted=facts["trusted"])
        self.bounds: LimitsSpec | None = None
        self.left = LimitsSpec()

    def now(self) -> Instant:
        """This machine's clock."""
        return Instant(time.time_ns() // 1_000_000)

    def remaining(self) -> float:
        """Seconds until the deadline."""
        return (self.deadline - datetime.now(UTC)).total_seconds()

    async def wait_cancelled(self) -> None:
        """A cancelled call is ended from outside."""
        import asyncio

        await asyncio.Event().wait()

    def checkpoint(self, cursor: JsonValue) -> Awaitable[None]:
        """Told to the engine, which says whether it is kept and the call may go on."""
        try:
            json.dumps(cursor, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise Misconfigured(f"a checkpoint is a small JSON value: {error}") from error
        self._said.say("checkpoint", cursor)
        if sys.stdin.buffer.readline() != b"kept\n":
            raise SystemExit(STOPPED)
        self.cursor = cursor
        return Kept()

    def artifact(self, name: str, data_or_path: bytes | str | Path, media_type: str | None = None) -> Artifact:
        """Handed to the engine, which keeps it."""
        raw = data_or_path if isinstance(data_or_path, bytes) else (self.workdir / data_or_path).read_bytes()
        kind = media_type or media_type_of(name)
        self._said.say("artifact", {"name": name, "media_type": kind, "base64": b64encode(raw).decode()})
        digest = Digest(f"sha256:{sha256(raw).hexdigest()}")
        return Artifact(name=name, digest=digest, media_type=kind, bytes=len(raw))

    async def kept(self, handle: JsonObject) -> bytes:
        """Only the engine's own adapters are given others' artifacts."""
        raise Misconfigured(f"'{handle.get('name')}' cannot be read in a process of its own")

    def progress(self, fraction: float, text: str | None = None) -> None:
        """Told to the engine as it happens."""
        self._said.say("progress", {"fraction": fraction, "text": text})

    def stream(self, text: str) -> None:
        """Told to the engine as it happens."""
        self._said.say("stream", text)

    def usage(
        self,
        cost: float | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        **counts: float | None,
    ) -> None:
        """Counted by the engine."""
        self._said.say("usage", {"cost": cost, "tokens_in": tokens_in, "tokens_out": tokens_out, **counts})

    def nearing(self, limit: str, used: float, most: float) -> None:
        """The supervisor looks."""

    def measured(self, used: Measured) -> None:
        """The supervisor measures."""

    def outlives(self) -> Callable[[], None]:
        """Nothing does."""
        return lambda: None
