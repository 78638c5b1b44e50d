"""The last words of a command that followed a task: outputs on stdout, the rest on stderr, and the exit code."""

from pathlib import Path
from typing import Any, Final, TypeAlias

import everstep
from everstep.domain.errors import EverstepError
from everstep.doors.cli.dialogue import answer_commands, cure
from everstep.doors.cli.follow import Follower, Stop
from everstep.doors.cli.render import Line, issue_lines, last_line, output_lines
from everstep.doors.cli.session import Session
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.view import TaskView
from everstep.doors.cli.words import output_text, safe, safe_lines, short

Json: TypeAlias = dict[str, Any]

EXIT_OK: Final = 0
EXIT_FAILED: Final = 1
EXIT_CANCELLED: Final = 7
EXIT_UNFINISHED: Final = 8
EXIT_INTERRUPTED: Final = 130
_OUTCOMES: Final = {"completed": EXIT_OK, "failed": EXIT_FAILED, "cancelled": EXIT_CANCELLED}
LOG_LINES: Final = 20


async def close_with(follower: Follower, stop: Stop) -> int:
    """Say how it stands, and return the exit code."""
    view, session = follower.view, follower.session
    code = exit_code(view, stop)
    if session.json:
        await _result_line(follower, code)
        return code
    match stop:
        case Stop.ENDED:
            await _ended(follower.connection, view, session)
        case Stop.INTERRUPTED if follower.manner.pauses:
            session.warn(_paused_text(view))
        case Stop.INTERRUPTED:
            session.warn(f"Left it going. Come back: everstep watch {short(view.id)}")
        case Stop.TIMEOUT:
            session.warn(f"Not finished in time ({view.status}). Come back: everstep watch {short(view.id)}")
        case Stop.NEEDS_SOMEONE:
            for line in waiting_lines(view):
                session.warn(line)
    return code


def exit_code(view: TaskView, stop: Stop) -> int:
    """By the outcome; a task that stands still is not finished."""
    if stop is Stop.INTERRUPTED:
        return EXIT_INTERRUPTED
    return _OUTCOMES[view.status] if stop is Stop.ENDED else EXIT_UNFINISHED


async def _ended(connection: Connection, view: TaskView, session: Session) -> None:
    say(session, last_line(view))
    for line in issue_lines(view) if view.status == "completed" else ():
        say(session, line)
    if view.status == "failed":
        for text in await failure_lines(connection, view):
            session.warn(text)
    if view.status == "completed":
        await fill_outputs(connection, view)
        for text in output_lines(view.outputs):
            session.result(text)


async def fill_outputs(connection: Connection, view: TaskView) -> None:
    """Outputs too large for an event come with the task."""
    if view.outputs is None:
        view.outputs = (await ask(connection, "GET", path_of("tasks", view.id))).get("outputs")


async def failure_lines(connection: Connection, view: TaskView) -> list[str]:
    """What the step logged last, and what to do."""
    error = view.error or {}
    step = error.get("step") or next((one.id for one in view.steps.values() if one.status == "failed"), None)
    lines = [f"    {line}" for line in await log_tail(connection, view.id, step)]
    if step:
        lines.append(f"  in:  step {step}" + (f", attempt {error['attempt']}" if error.get("attempt") else ""))
    lines.append(f"  do:  {safe(error.get('what_to_do') or 'look at the step')}")
    lines.append(f"       everstep show {short(view.id)} {step or ''}".rstrip())
    lines.append(f"       everstep retry {short(view.id)}    again from there; what came before stands")
    return lines


async def log_tail(connection: Connection, task: str, step: str | None) -> list[str]:
    """The step's last lines; none where nothing was logged, or logs are not kept."""
    try:
        page = await ask(connection, "GET", path_of("tasks", task, "logs", step=step, limit=500))
    except EverstepError:
        return []
    return [line for item in page.get("items") or () for line in log_lines(item)][-LOG_LINES:]


def log_lines(item: Json, *, whole: bool = False) -> list[str]:
    """What was logged, with the part of a stack that is the user's own."""
    fields: Json = item.get("fields") or {}
    lines = safe_lines(str(item.get("message") or ""))
    stack = fields.get("stack")
    if isinstance(stack, str):
        return [
            *lines,
            *(f"  {line}" for line in safe_lines(stack.rstrip()) if whole),
            *([] if whole else own_stack(stack)),
        ]
    more = " ".join(f"{name}={output_text(value)}" for name, value in fields.items())
    return [*lines[:-1], f"{lines[-1]} {safe(more)}".rstrip()]


def own_stack(stack: str) -> list[str]:
    """A stack without the frames of this package: what is left is the user's code."""
    ours, kept, skipping = str(Path(everstep.__file__).parent), [], False
    for line in stack.rstrip().splitlines():
        if line.startswith("  File "):
            skipping = line.startswith(f'  File "{ours}')
        elif not line.startswith("  "):
            skipping = False
        if not skipping:
            kept.append(f"  {safe(line)}")
    return kept


def waiting_lines(view: TaskView) -> list[str]:
    """Who is asked what, with the commands to answer."""
    lines = []
    for pause in view.pauses.values():
        if pause["reason"]["type"] == "userRequested":
            lines.append(_paused_text(view))
            continue
        lines.append(f"Waits for you: {safe(pause['title'])}")
        said = safe_lines(pause.get("why") or "")
        lines += [f"  {'why:' if at == 0 else '    '} {line}" for at, line in enumerate(said)]
        if hint := cure(pause):
            lines.append(f"       ({hint})")
        commands = answer_commands(pause)
        lines += [f"  {'do: ' if at == 0 else '    '} {command}" for at, command in enumerate(commands)]
    return lines


def _paused_text(view: TaskView) -> str:
    questions = [pause for pause in view.pauses.values() if pause["reason"]["type"] != "userRequested"]
    if questions:
        first = questions[0]
        return f"Waits for you: {safe(first['title'])} Nothing is lost. Answer: everstep inbox {short(first['id'])}"
    ended = [step.id for step in view.steps.values() if step.ended]
    after = view.last_step or (ended[-1] if ended else None)
    where = f"after {after}" if after else "before the first step"
    return f"Paused {where}. Nothing is lost. Resume: everstep resume {short(view.id)}"


def say(session: Session, line: Line) -> None:
    """A line with its colours; also under `-q`: it is the last."""
    session.warn("".join(session.paint(text, style) if style else text for text, style in line))


async def _result_line(follower: Follower, code: int) -> None:
    view = follower.view
    try:
        task = await ask(follower.connection, "GET", path_of("tasks", view.id))
    except EverstepError:
        task = {"id": view.id, "status": view.status}
    result: Json = {"type": "result", "ok": code == EXIT_OK, "exit_code": code, "task": task}
    if code != EXIT_OK:
        result["error"] = task.get("error")
    follower.session.result_json(result)
