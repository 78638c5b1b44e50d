"""The proxy on HTTP, where the conformance suite can ask it: `proxy_host.py PORT URL FOLDER`."""

import asyncio
import sys
from pathlib import Path

import uvicorn

from everstep.bootstrap import Proxied
from everstep.doors.mcp.channel import Changing
from everstep.doors.mcp.desk import DoorDesk
from everstep.doors.mcp.http import HttpDoor
from everstep.doors.mcp.opening import Finder, limits_in, now_ms
from everstep.doors.mcp.proxy import proxy_door
from everstep.doors.mcp.published import Book
from everstep.settings import load_settings

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.mcp_conformance.fixture import named_right  # noqa: E402 -- a program, not a package


async def main(port: int, url: str, folder: Path) -> None:
    settings = load_settings({"store": str(folder / "proxy.db"), "mcp.sessions_per_owner": 1000}, env={}, cwd=folder)
    remote = Proxied(settings, "behind", (), url)
    finder = Finder(settings, (await remote.open(),))
    desk = DoorDesk(Changing(finder.find), Book(()), limits_in(settings), now_ms)
    door = HttpDoor(proxy_door(desk, remote, settings.owner), "1.0")
    await uvicorn.Server(uvicorn.Config(named_right(door), port=port, log_level="error", lifespan="off")).serve()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
