"""`everstep show`: one task, one of its steps, or a part of it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from everstep.doors.cli.connect import Need, perform
from everstep.doors.cli.endings import waiting_lines
from everstep.doors.cli.find import find_task
from everstep.doors.cli.render import flat, issue_lines, step_line, title_columns
from everstep.doors.cli.session import Session, width
from everstep.doors.cli.talk import Connection, ask, journal, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.view import TaskView
from everstep.doors.cli.words import about, clock, output_text, payload_glance, safe, safe_lines, seconds, short

Json: TypeAlias = dict[str, Any]

VALUES_MAX: Final = 1000
"""So many steps and items of a page to keep have their values with them; all have their place on the timeline."""


@click.command(
    cls=Verb,
    epilog="everstep show @last\neverstep show t_7k2m9qx4 draft --output\neverstep show @last --events | jq .type",
)
@click.argument("task")
@click.argument("step", required=False)
@click.option("--input", "part", flag_value="input", help="Only what went in, as JSON.")
@click.option("--output", "part", flag_value="output", help="Only what came out, as JSON.")
@click.option("--plan", "part", flag_value="plan", help="Only the plan, as it was pinned.")
@click.option("--handoff", "part", flag_value="handoff", help="What whoever takes it over needs, as JSON.")
@click.option("--html", "file", metavar="F", help="All of it as one page to keep or send: timeline, values, journal.")
@click.option("--events", "--journal", "part", flag_value="events", help="The journal, one event per line.")
def show(task: str, step: str | None, part: str | None, file: str | None) -> int:
    """Show a task, or one STEP of it. TASK is an id, its beginning, a key, or @last."""

    async def act(connection: Connection, session: Session) -> int:
        found = await find_task(connection, task)
        if file is not None:
            await _page(connection, session, found, Path(file))
        elif part == "events":
            await _events(connection, session, found["id"], step)
        elif part == "plan":
            plan = await ask(connection, "GET", path_of("tasks", found["id"], "plan"))
            _part(session, plan.get("plan", plan))
        elif part == "handoff":
            _part(session, await ask(connection, "GET", path_of("tasks", found["id"], "handoff")))
        elif step is not None:
            _step(session, found, await ask(connection, "GET", path_of("tasks", found["id"], "steps", step)), part)
        elif part is not None:
            _part(session, found["inputs" if part == "input" else "outputs"])
        elif session.json:
            session.result_json(found)
        else:
            for line in task_page(found, session):
                session.result(line)
        return 0

    return perform(Need.LOOK, act)


async def _events(connection: Connection, session: Session, task: str, step: str | None) -> None:
    async for event in journal(connection, task):
        if step is None or event.get("step") == step:
            session.result_json(event)


async def _page(connection: Connection, session: Session, task: Json, file: Path) -> None:
    """Everything about it in one file."""
    from everstep.doors.dashboard import STATIC
    from everstep.doors.dashboard.report import write_html

    names = [step["id"] for step in (task.get("steps") or [])]
    names += [step["id"] async for step in _items(connection, task["id"]) if "[" in step["id"]]
    steps = [await ask(connection, "GET", path_of("tasks", task["id"], "steps", name)) for name in names[:VALUES_MAX]]
    logs = await ask(connection, "GET", path_of("tasks", task["id"], "logs", limit=500))
    events = [event async for event in journal(connection, task["id"])]
    report = {"made_at": task["updated_at"], "task": task, "steps": steps, "events": events, "logs": logs["items"]}
    write_html(file, report, STATIC)
    if session.json:
        session.result_json({"file": str(file)})
    else:
        session.result(str(file))


async def _items(connection: Connection, task: str) -> AsyncIterator[Json]:
    """Steps and their items, page by page."""
    cursor = None
    while True:
        page = await ask(connection, "GET", path_of("tasks", task, "steps", limit=500, cursor=cursor))
        for step in page["items"]:
            yield step
        cursor = page["next_cursor"]
        if cursor is None:
            return


def _part(session: Session, value: object) -> None:
    import json

    indent = 2 if session.out.isatty() and not session.json else None
    session.result(json.dumps(value, ensure_ascii=False, indent=indent))


def _step(session: Session, task: Json, step: Json, part: str | None) -> None:
    if part is not None:
        payload = step.get(part) or {}
        _part(session, payload.get("value", payload or None))
    elif session.json:
        session.result_json(step)
    else:
        for line in step_page(task, step):
            session.result(line)


def task_page(task: Json, session: Session) -> list[str]:
    """A task on one screen."""
    view = TaskView.of(task)
    columns, wide = title_columns(view, width()), width()
    by = task.get("created_by") or {}
    plan = task.get("plan") or {}
    made = f"made {clock(task.get('created_at'))} by {by.get('id')} through {by.get('via')}"
    lines = [
        f"{session.paint(view.title, 'bold', session.out)}   {task['id']}",
        *_explained(task.get("explain") or {}, view.status),
        *([f"left: {left}"] if (left := about(task.get("estimate"))) else []),
        f"plan {plan.get('name')} ({str(plan.get('digest'))[:15]}…), {made}",
        "",
    ]
    lines += [flat(step_line(step, columns, wide)) for step in view.steps.values()]
    for name in ("inputs", "outputs"):
        if values := task.get(name):
            lines += ["", name, *(f"  {key}: {output_text(value)}" for key, value in values.items())]
    if view.issues:
        lines += ["", "issues", *(flat(line) for line in issue_lines(view))]
    if view.error:
        lines += ["", *error_lines(view.error)]
    if view.pauses and view.status == "paused":
        lines += ["", *waiting_lines(view)]
    elif view.status in ("queued", "stalled"):
        lines += ["", f"Go on: everstep resume {short(view.id)}"]
    return lines


def _explained(explain: Json, status: str) -> list[str]:
    """What it is doing, and what comes next if anything does."""
    then = explain.get("next")
    return [safe(explain.get("text") or status), *([f"next: {safe(then)}"] if then not in (None, "nothing") else [])]


def step_page(task: Json, step: Json) -> list[str]:
    """A step on one screen."""
    phase = f" ({step['phase']})" if step.get("phase") not in (None, "done") else ""
    length = f" in {seconds(step['duration_s'])}" if step.get("duration_s") is not None else ""
    skip = f": {step['skip']['reason']}" if step.get("skip") else ""
    tool = step.get("tool_used") or step.get("tool")
    lines = [
        f"{safe(step.get('title') or step['id'])}   step {step['id']} of {short(task['id'])}",
        f"{step['status']}{phase}{length}{skip}",
        f"tool {tool}, effect {step.get('effect')}, on error {step.get('on_error')}",
    ]
    for name in ("input", "output"):
        if payload := step.get(name):
            lines += ["", name, *_payload(payload)]
    if step.get("error"):
        lines += ["", *error_lines(step["error"])]
    if attempts := step.get("attempts"):
        lines += ["", "attempts"]
        lines += [_attempt(one) for one in attempts]
    return lines


def _payload(payload: Json) -> list[str]:
    if "value" not in payload:
        return [f"  {payload_glance(payload)}, kept as {payload.get('artifact')}"]
    value = payload["value"]
    if isinstance(value, dict):
        return [f"  {key}: {line}" for key, one in value.items() for line in safe_lines(output_text(one))[:1]]
    return [f"  {line}" for line in safe_lines(output_text(value))]


def _attempt(one: Json) -> str:
    error = one.get("error") or {}
    told = f"  {safe(error.get('message') or '')}  [{error['code']}]" if error else ""
    length = seconds(one["duration_s"]) if one.get("duration_s") is not None else "-"
    return f"  {one['number']:>3}  {clock(one.get('started_at'))}  {one['status']:<10} {length:>7}{told}"


def error_lines(error: Json) -> list[str]:
    """An Error object as text."""
    lines = [f"error: {safe(error.get('message') or '')}   [{error.get('code')}]"]
    lines.append(f"  category {error.get('category')}, effect {error.get('effect_state')}")
    if error.get("what_to_do"):
        lines.append(f"  do:  {safe(error['what_to_do'])}")
    return lines
