"""A durable function that is killed again and again: the process that carries it.

    python -m everstep.torture.agent FOLDER CALLS URL

It makes its calls at a server of somebody else's, which counts them; started again after a kill, it goes on with the
same task. What every call returns depends on those before it, so one lost or other answer would change the result.
"""

import asyncio
import json
import sys
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from everstep import Ctx, Engine, durable, tool
from everstep.authoring.durable import DurableFunction
from everstep.authoring.durable_ctx import DurableCtx
from everstep.ports.tool import Call
from everstep.torture.child import SETTINGS, log_of

RESULT: Final = "result.json"
ROUND: Final = 8
"""Calls of one round: a thought, four acts at a time, two more thoughts, the time."""


def ask(url: str, path: str, **said: object) -> Any:  # noqa: ANN401 -- any JSON
    """One request to the server that counts."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    connection.request("POST", path, json.dumps(said), {"content-type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def agent(folder: Path, url: str) -> tuple[DurableFunction, tuple[object, ...]]:
    """The function, with tools that call the server and tell the world's log."""
    log = log_of(folder)

    def probe(call: Call) -> Literal["not_done"] | tuple[Literal["done"], object]:
        found = ask(url, "/look", key=call.idempotency_key)
        return "not_done" if found is None else ("done", found)

    async def work(path: str, value: int, ctx: Ctx) -> int:
        log.write("start", ctx, None)
        answer: int = await asyncio.to_thread(ask, url, path, key=ctx.idempotency_key, step=ctx.step_id, value=value)
        log.write("end", ctx, answer)
        return answer

    @tool("agent.think", effect="pure")
    async def think(value: int, *, ctx: Ctx) -> int:
        return await work("/think", value, ctx)

    @tool("agent.act", effect="verifiable", probe=probe)
    async def act(value: int, *, ctx: Ctx) -> int:
        return await work("/act", value, ctx)

    @durable("agent", version="1")
    async def run(ctx: DurableCtx, calls: int) -> dict[str, Any]:
        """Think, act four times at once, think again."""
        value, path = 1, []
        for _ in range(calls // ROUND):
            value = await ctx.call(think, {"value": value})
            done = await ctx.gather(*[ctx.call(act, {"value": value + n}) for n in range(4)], limit=3)
            value = await ctx.call(think, {"value": sum(done) % 1_000_003})
            value = await ctx.call("agent.think", {"value": value})
            await ctx.now()
            path.append(value)
        return {"path": path}

    return run, (think, act)


async def carry(folder: Path, calls: int, url: str) -> None:
    """Go on with the task until it ends."""
    function, tools = agent(folder, url)
    async with Engine(folder / "store.db", tools=[function, *tools], config=SETTINGS) as engine:
        result = await engine.run(function, {"calls": calls})
    told = {"status": result.status, "outputs": result.outputs, "error": result.error}
    (folder / RESULT).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(carry(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
