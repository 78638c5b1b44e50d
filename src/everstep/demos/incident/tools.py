"""The tool of this scenario: it asks whoever looks after services to restart one."""

import asyncio
from typing import TypedDict
from urllib.request import Request, urlopen

from everstep import Ctx, Transient, tool
from everstep.demos.folder import DemoFolder


class Restarted(TypedDict):
    """The service runs again."""

    name: str
    pid: int


@tool("service.restart", title="Restart a service", timeout="60s")
async def restart(name: str, *, ctx: Ctx) -> Restarted:
    """End a service and start it again. People are cut off: it must not happen twice."""
    port = DemoFolder(ctx.workdir).rig["keeper"]
    try:
        pid = await asyncio.to_thread(_ask, f"http://127.0.0.1:{port}/restart", ctx.idempotency_key)
    except ConnectionRefusedError as error:
        raise Transient("nobody looks after services") from error
    await asyncio.sleep(0.5)  # until it has warmed up
    return {"name": name, "pid": pid}


def _ask(url: str, key: str) -> int:
    request = Request(url, data=key.encode(), method="POST")  # noqa: S310 -- the loopback
    with urlopen(request, timeout=45) as reply:  # noqa: S310 -- as above
        return int(reply.read())
