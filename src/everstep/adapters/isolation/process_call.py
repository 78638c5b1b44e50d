"""A function tool called in a process of its own: what it may use is enforced, and it can always be ended."""

import builtins
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from everstep.adapters.isolation.bounds import bounds_of, exceeded, refuse_broken, report
from everstep.adapters.isolation.child import Child, Program
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


async def call_in_process(function: Function, call: Call, ctx: Ctx, *, uid: int | None, require: str) -> JsonValue:
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
            "deadline": ctx.deadline.timestamp(),
            "trusted": ctx.origin.trusted,
        },
    }
    readable = {sys.prefix, sys.base_prefix, str(Path(place.file).parent), *(path for path in sys.path if path)}
    program = Program(
        argv=(sys.executable, "-m", "everstep.adapters.isolation.serve"),
        cwd=workdir,
        env={"PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=json.dumps(order).encode(),
        bounds=bounds_of(ctx),
        network=any(need.startswith("net") for need in function.spec.permissions),
        uid=uid,
        reads=tuple(sorted(readable)),
        writes=(workdir,),
        require=require,
    )
    ended = await Child(program, answers=True).run()
    report(ended, ctx)
    refuse_broken(ended, call.tool)
    said = bytes(ended.stderr.data[-500:]).decode(errors="replace").strip()
    try:
        return _answer(ended.answer, ctx, said or f"it ended with exit code {ended.exit_code}, signal {ended.signal}")
    except MemoryError as error:  # it was refused what it asked for, and ended by itself
        most = program.bounds.memory_bytes
        raise exceeded(("memory", most + 1, most), ended) from error


def _answer(lines: bytes, ctx: Ctx, trouble: str) -> JsonValue:
    for line in lines.splitlines():
        ((what, value),) = json.loads(line).items()
        match what:
            case "result":
                result: JsonValue = value
                return result
            case "invalid":
                return float("nan")  # judged where every result is
            case "asked":
                raise NeedsInput(value["question"], value["schema"], by=value["by"])
            case "failed":
                raise ChildError(value)
            case "raised":
                raise _exception(value)
            case "progress":
                ctx.progress(value["fraction"], value["text"])
            case "stream":
                ctx.stream(value)
            case "usage":
                ctx.usage(**value)
            case _:
                ctx.log.info(value["text"], **value["fields"])
    raise ChildDied(f"the process ended without an answer: {trouble}", code="process_died", effect_state="unknown")


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
