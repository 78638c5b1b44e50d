"""`/v1/stats`: how it went over the last hours, of all plans or one; or where the time of one task went."""

import asyncio
from typing import Final

from everstep.domain.errors import Validation
from everstep.domain.quantities import parse_duration
from everstep.domain.regression import regressions
from everstep.domain.stats import stats_of
from everstep.domain.values import JsonObject
from everstep.doors.api.context import Asked, Backing
from everstep.doors.api.request import Response, reply
from everstep.wire.stats import report_json, stats_json

HOUR_MS: Final = 3_600_000
HOURS_MAX: Final = 30 * 24


async def read(back: Backing, asked: Asked) -> Response:
    """Figures of the caller's tasks."""
    query, monitoring = asked.query, back.desk.monitoring
    if task := query.get("task"):
        if wrong := [name for name in ("range", "plan") if name in query]:
            raise Validation(f"'{wrong[0]}' goes without 'task': a task is shown from its beginning")
        state = await back.desk.get(task, asked.who)
        timeline, legs = await monitoring.report(state)
        return reply(report_json(timeline, state, legs))
    hours = _hours(query.get("range", "24h"))
    seen = await monitoring.stats(asked.who.owner, query.get("plan"), hours)

    def added_up() -> JsonObject:
        slow = [one for _, one in regressions(seen.calls)]
        return stats_json(stats_of(seen.rows), hours, now=seen.now, slow=slow, as_of=seen.as_of)

    return reply({"plan": query.get("plan"), **await asyncio.to_thread(added_up)})


def _hours(text: str) -> int:
    length = parse_duration(text)
    if length is None or not HOUR_MS <= length <= HOURS_MAX * HOUR_MS:
        raise Validation("'range' takes 1h, 24h, 7d, 30d, or another duration between an hour and 30 days")
    return -(-length // HOUR_MS)
