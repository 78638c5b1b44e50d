"""`everstep ls`: tasks, two lines each: what it is, and why it stands where it stands."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import click

from everstep.domain.errors import EverstepError
from everstep.domain.states import TaskStatus
from everstep.domain.suggest import did_you_mean, suggest
from everstep.doors.cli.connect import Need, perform
from everstep.doors.cli.render import MARKS
from everstep.doors.cli.session import Session, width
from everstep.doors.cli.talk import Connection, ask, path_of
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import ago, cut, instant, pad, safe, short

Json: TypeAlias = dict[str, Any]

PAGE_MAX: Final = 500
FILTERS: Final = (
    click.option("--status", metavar="S,…", help=f"Only these: {', '.join(TaskStatus)}."),
    click.option("--plan", metavar="NAME", help="Only tasks of this plan."),
    click.option("--tool", metavar="NAME", help="Only tasks whose plan calls this tool."),
    click.option("--reason", metavar="TYPE", help="Only tasks that wait for this: toolError, userRequested, …."),
    click.option("--label", metavar="K=V", help="Only tasks with this label."),
    click.option("--since", metavar="D", help="Only tasks made in the last 30m, 12h, 7d; or since a time."),
    click.option("--grep", "text", metavar="TEXT", help="Only tasks with this in title, id or error."),
)


def filters(command: Callable[..., int]) -> Callable[..., int]:
    """The options that say which tasks."""
    for option in reversed(FILTERS):
        command = option(command)
    return command


@click.command(
    cls=Verb,
    epilog="""
    everstep ls --status paused,failed
    everstep ls --plan research-brief --since 2d
    everstep ls --json | jq .items[].id
    """,
)
@filters
@click.option("-n", "limit", type=click.IntRange(1), default=50, show_default=True, help="At most so many.")
@click.option("--all", "all_of_them", is_flag=True, help="Every one.")
def ls(limit: int, *, all_of_them: bool, **only: str | None) -> int:
    """List tasks, newest first."""
    query = query_of(only)

    async def act(connection: Connection, session: Session) -> int:
        wanted = None if all_of_them else limit
        items, cursor = await collect(connection, query, wanted)
        if session.json:
            session.result_json({"items": items, "next_cursor": cursor})
            return 0
        for item in items:
            for line in task_lines(item, session):
                session.result(line)
        _close(session, items, cursor, filtered=any(query.values()))
        return 0

    return perform(Need.LOOK, act)


def query_of(only: Mapping[str, str | None]) -> Json:
    """What the options say, as the API wants it; raises what is wrong with them."""
    _check_status(only["status"])
    return {
        **{name: only[name] for name in ("status", "plan", "tool", "reason", "since")},
        "label": _label(only["label"]),
        "q": only["text"],
    }


async def collect(connection: Connection, query: Json, wanted: int | None) -> tuple[list[Json], str | None]:
    """As many items as wanted, page by page; and where the list goes on."""
    items: list[Json] = []
    cursor: str | None = None
    while wanted is None or len(items) < wanted:
        size = PAGE_MAX if wanted is None else min(wanted - len(items), PAGE_MAX)
        page = await ask(connection, "GET", path_of("tasks", **query, limit=size, cursor=cursor))
        items += page["items"]
        cursor = page.get("next_cursor")
        if cursor is None:
            break
    return items, cursor


def task_lines(task: Json, session: Session) -> list[str]:
    """The two lines of a task."""
    columns = width()
    mark, style = MARKS.get(task["status"], ("  ", "dim"))
    progress = task.get("progress") or {}
    count = f"{progress.get('done', 0)}/{progress.get('total', 0)}"
    when = ago(time.time() - (instant(task.get("updated_at")) or time.time()))
    title = pad(safe(task.get("title") or ""), max(columns - 40, 20))
    first = f" {session.paint(mark, style, session.out)} {short(task['id'])}  {title} {count:>7}  {when:>10}"
    why = (task.get("explain") or {}).get("text") or task["status"]
    return [first, session.paint(f"      {cut(safe(why), max(columns - 8, 20))}", "dim", session.out)]


def _check_status(given: str | None) -> None:
    for word in (given or "").split(",") if given else ():
        if word not in [*TaskStatus]:
            raise EverstepError(
                did_you_mean(f"'{word}' is not a status", suggest(word, [*TaskStatus])),
                code="bad_request",
                what_to_do=f"one or more of {','.join(TaskStatus)}",
            )


def _label(given: str | None) -> str | None:
    """`K=V` as the API wants it."""
    if given is None:
        return None
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise EverstepError(f"'{given}' is no label", code="bad_request", what_to_do="write --label NAME=VALUE")
    return f"{name}:{value}"


def _close(session: Session, items: list[Json], cursor: str | None, *, filtered: bool) -> None:
    if not items:
        session.say("no task fits" if filtered else "no tasks yet; start one: everstep run PLAN, or see: everstep demo")
    elif cursor is not None:
        session.say(f"the newest {len(items)}; more: everstep ls -n {len(items) * 4}, or --all", "dim")
