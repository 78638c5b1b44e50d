"""Which task or pause somebody means: an id, a key, the beginning of an id, `@last`."""

from typing import Any, Final, TypeAlias

from everstep.domain.errors import EverstepError, NotFound
from everstep.doors.cli.talk import Connection, ask, path_of

Json: TypeAlias = dict[str, Any]

LAST: Final = "@last"
PREFIX_MIN: Final = 4


async def find_task(connection: Connection, said: str) -> Json:
    """The Task that is meant."""
    if said == LAST:
        page = await ask(connection, "GET", path_of("tasks", limit=1))
        if not page["items"]:
            raise NotFound("there is no task yet", what_to_do="start one: everstep run PLAN")
        said = page["items"][0]["id"]
    elif said.startswith("t_") and len(said) < len("t_") + PREFIX_MIN:
        raise EverstepError(
            f"'{said}' is too short", code="bad_request", what_to_do=f"give at least {PREFIX_MIN} characters after t_"
        )
    try:
        return await ask(connection, "GET", path_of("tasks", said))
    except EverstepError as error:
        if error.code != "not_found":
            raise
        raise NotFound(f"no task '{said}'", what_to_do=error.what_to_do) from None


async def find_pause(connection: Connection, said: str) -> Json:
    """The Pause that is meant; one of a task is meant by the task's name too, if it is the only one."""
    if said.startswith("p_") and len(said) == len("p_") + 26:
        return await ask(connection, "GET", path_of("inbox", said))
    items: list[Json] = (await ask(connection, "GET", path_of("inbox")))["items"]
    if said == LAST or not said.startswith("p_"):
        task = (await find_task(connection, said))["id"]
        found = [pause for pause in items if pause["task"] == task]
    else:
        found = [pause for pause in items if pause["id"].startswith(said)]
    if len(found) == 1:
        return found[0]
    if found:
        raise EverstepError(
            f"'{said}' means {len(found)} pauses",
            code="bad_request",
            what_to_do=f"choose one: {', '.join(pause['id'] for pause in found)}",
        )
    raise NotFound(f"no open pause '{said}'", what_to_do="list what waits for someone: everstep inbox")
