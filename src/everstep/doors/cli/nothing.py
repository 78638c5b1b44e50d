"""Nobody at the other end, and nothing to ask about: there is no store yet, and looking does not make one."""

from collections.abc import AsyncIterator

from everstep.domain.errors import EverstepError, NotFound
from everstep.domain.ids import Instant
from everstep.domain.stats import Stats
from everstep.doors.api import split_target
from everstep.doors.cli.talk import Ask, Json, Reply
from everstep.doors.errors import problem, refusal_of
from everstep.wire.export import EVENT_COLUMNS, TASK_COLUMNS, Writer
from everstep.wire.stats import stats_json


class EmptyStore:
    """There is no store yet, and looking does not make one."""

    own = False

    async def request(self, asking: Ask) -> Reply:
        """Lists are empty, everything else is not there."""
        path, _ = split_target(asking.path)
        if asking.method == "GET" and path in ("/v1/tasks", "/v1/inbox", "/v1/errors", "/v1/breakers", "/v1/tokens"):
            return Reply(status=200, body={"items": [], "next_cursor": None})
        if path == "/v1/stats":
            return Reply(status=200, body={"plan": None, **stats_json(Stats(), 24, now={}, slow=(), as_of=Instant(0))})
        what = f"no task '{path.split('/')[3]}'" if path.startswith("/v1/tasks/") else "there is nothing here yet"
        error: EverstepError = NotFound(what, what_to_do="there is no store here yet: everstep run PLAN")
        return Reply(status=refusal_of(error).status, body=dict(problem(error)))

    async def stream(self, path: str) -> AsyncIterator[Json]:  # noqa: ARG002 -- nothing is ever said
        """Nothing."""
        nothing: tuple[Json, ...] = ()
        for frame in nothing:
            yield frame

    async def parts(self, path: str) -> AsyncIterator[str]:
        """Nothing, which begins and ends all the same."""
        query = split_target(path)[1]
        writer = Writer(query.get("format", "csv"), TASK_COLUMNS if query.get("what") == "tasks" else EVENT_COLUMNS)
        yield (writer.begin() + writer.end()).decode()

    def carry(self, task: str) -> None:
        """There is nothing to carry."""
