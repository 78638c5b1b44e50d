"""A function tool called in a process of its own: what it may use is enforced, and it can always be ended."""

import asyncio
import builtins
import inspect
import json
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from everstep.adapters.isolation.bounds import Walls, bounds_of, exceeded, ran, refuse_broken
from everstep.adapters.isolation.child import Child, Program
from everstep.adapters.isolation.started import IMPORTED
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.function import Function
from everstep.ports.tool import Call, Ctx, NeedsInput, ToolError


@record
class Place:
    """Where the function is imported from, in the child."""

    module: str
    name: str
    file: str


def place_of(function: Function) -> Place:
    """Its module and name; of a script the file."""
    inner = inspect.unwrap(function.call)
    return Place(module=inner.__module__, name=inner.__qualname__, file=inner.__code__.co_filename)


def _whole(path: str | Path) -> str:
    return str(Path(path).resolve())


async def call_in_process(function: Function, call: Call, ctx: Ctx, walls: Walls) -> JsonValue:
    """What it returns or raises, as if it had been called here."""
    place, workdir = place_of(function), _whole(ctx.workdir)
    order: JsonObject = {
        "module": place.module,
        "name": place.name,
        "file": place.file,
        "path": [_whole(path or ".") for path in sys.path],
        "arguments": call.arguments,
        "ctx": {
            "task_id": ctx.task_id,
            "step_id": ctx.step_id,
            "attempt": ctx.attempt,
            "owner": ctx.owner,
            "workdir": workdir,
            "idempotency_key": ctx.idempotency_key,
            "answer": ctx.answer,
            "cursor": ctx.cursor,
            "deadline": ctx.deadline.timestamp(),
            "trusted": ctx.origin.trusted,
        },
    }
    readable = {sys.prefix, sys.base_prefix, str(Path(place.file).parent), *(path for path in sys.path if path)}
    program = Program(
        argv=(sys.executable,),
        cwd=workdir,
        env=IMPORTED,
        stdin=json.dumps(order).encode() + b"\n",
        bounds=bounds_of(ctx),
        network=any(need.startswith("net") for need in function.spec.permissions),
        uid=walls.uid,
        reads=tuple(sorted(readable)),
        writes=(workdir,),
        require=walls.needed(call.tool, trusted=ctx.origin.trusted),
    )
    answers = Answers(ctx, most=16 * program.bounds.output_bytes)
    child = Child(program, answered=answers.hear, started=walls.spares.take())
    answers.reply = child.say
    try:
        ended = await ran(child, ctx)
    finally:
        answers.close()
    if answers.still is not None:
        raise answers.still
    refuse_broken(ended, call.tool)
    said = bytes(ended.stderr.data[-500:]).decode(errors="replace").strip()
    try:
        return answers.result(said or f"it ended with exit code {ended.exit_code}, signal {ended.signal}")
    except MemoryError as error:  # it was refused what it asked for, and ended by itself
        most = program.bounds.memory_bytes
        raise exceeded(("memory", most + 1, most), ended) from error


class Answers:
    """What a child says, line by line, as it comes; its result is judged when it has ended."""

    def __init__(self, ctx: Ctx, most: int) -> None:
        self._ctx = ctx
        self._left = most
        """So many bytes are listened to."""
        self._part = b""
        self._last: tuple[str, Any] | None = None
        self._usage: list[dict[str, Any]] = []
        self._artifacts: list[dict[str, Any]] = []
        self._keeping: set[asyncio.Task[None]] = set()
        self.reply: Callable[[bytes], None] = lambda _: None
        self.still: Exception | None = None
        """Why it was not to go on after a checkpoint."""

    def hear(self, piece: bytes) -> None:
        """Some more of it."""
        piece, self._left = piece[: max(0, self._left)], self._left - len(piece)
        *lines, self._part = (self._part + piece).split(b"\n")
        for line in lines:
            try:
                ((what, value),) = json.loads(line).items()
                self._said(what, value)
            except (ValueError, TypeError, KeyError, AttributeError):  # somebody else writes there: not listened to
                self._left, self._last = 0, None

    def _said(self, what: str, value: Any) -> None:
        match what:
            case "progress":
                self._ctx.progress(value["fraction"], value["text"])
            case "stream":
                self._ctx.stream(value)
            case "log":
                self._ctx.log.info(value["text"], **value["fields"])
            case "artifact":
                self._artifacts.append(value)
            case "usage":
                self._usage.append(value)
            case "checkpoint":
                keeping = asyncio.ensure_future(self._keep(value))
                self._keeping.add(keeping)
                keeping.add_done_callback(self._keeping.discard)
            case _:
                self._last = what, value

    async def _keep(self, cursor: JsonValue) -> None:
        """It waits for our word; if it must not go on, it is told so, and ends."""
        try:
            await self._ctx.checkpoint(cursor)
        except ToolError as error:
            self.still = error
        self.reply(b"kept\n" if self.still is None else b"stop\n")

    def close(self) -> None:
        """It has ended: nobody waits for an answer."""
        for keeping in self._keeping:
            keeping.cancel()

    def result(self, trouble: str) -> JsonValue:
        """What it returned; raises what it raised."""
        for used in self._usage:
            self._ctx.usage(**used)
        for one in self._artifacts:
            self._ctx.artifact(one["name"], b64decode(one["base64"]), one["media_type"])
        match self._last:
            case ("result", value):
                result: JsonValue = value
                return result
            case ("invalid", _):
                return float("nan")  # judged where every result is
            case ("asked", value):
                raise NeedsInput(value["question"], value["schema"], by=value["by"])
            case ("failed", value):
                raise ChildError(value)
            case ("raised", value):
                raise _exception(value)
            case _:
                what = f"the process ended without an answer: {trouble}"
                raise ChildDied(what, code="process_died", effect_state="unknown")


class ChildError(ToolError):
    """What the tool said in its own process."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(
            told["message"],
            code=told["code"],
            what_to_do=told["what_to_do"],
            details=told["details"],
            effect_state=told["effect_state"],
        )
        self.category = told["category"]
        self.retry_after = told["retry_after"]


class ChildDied(ToolError):
    """It crashed, or was ended by somebody else."""

    category = "transient"


def _exception(told: dict[str, Any]) -> Exception:
    """One of Python's own comes back as itself; any other as a bug that names its line."""
    kind = getattr(builtins, told["type"], None)
    if isinstance(kind, type) and issubclass(kind, OSError | MemoryError):
        return kind(*told["args"])
    return RuntimeError(told["text"])
