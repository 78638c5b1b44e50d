"""What can be said to a client while its request is open: how far it is, and a question."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeAlias

from everstep.domain.errors import EverstepError
from everstep.domain.record import record
from everstep.doors.mcp.channel import Caller, Channel, Json

Tell: TypeAlias = Callable[[int, int, str], Awaitable[None]]
"""How far it is: done, total, in words."""
Elicit: TypeAlias = Callable[[str, Json], Awaitable[Json]]
"""Ask the person behind the client: message and schema in, `{action, content}` out."""
WHOLE: Final = 100


@record
class Talk:
    """What this request can be told and asked; None: it cannot."""

    tell: Tell | None = None
    elicit: Elicit | None = None


SILENT: Final = Talk()


@contextlib.asynccontextmanager
async def telling(channel: Channel, caller: Caller, task: str, tell: Tell | None) -> AsyncIterator[None]:
    """While it is carried out, whoever asked hears how far it is."""
    if tell is None:
        yield
        return
    await tell(0, WHOLE, "")
    errand = asyncio.create_task(_pass_on(channel, caller, task, tell))
    try:
        yield
    finally:
        errand.cancel()
        await asyncio.wait((errand,))


async def _pass_on(channel: Channel, caller: Caller, task: str, tell: Tell) -> None:
    told = 0
    with contextlib.suppress(EverstepError):  # what is lost here is told by the end
        async for frame in channel.watch(caller, f"/v1/tasks/{task}/events"):
            for step in frame["steps"] if frame["type"] == "tick" else ():
                done = min(round((step["fraction"] or 0) * WHOLE), WHOLE - 1)
                if done > told:
                    told = done
                    await tell(done, WHOLE, str(step["note"] or ""))
