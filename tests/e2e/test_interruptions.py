"""A task goes on when the network comes back: late answers, drips, resets, silence, and names that cannot be found."""

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from everstep import Engine, Plan
from everstep.testing.rig import Asked, HttpRig, Writer, answer, drip, reset, silence

GOOD = answer(200, {"n": 1})


async def late(asked: Asked, writer: Writer) -> bool:
    await asyncio.sleep(0.3)
    return await GOOD(asked, writer)


@pytest.mark.req("TR.2")
async def test_every_interruption_is_outlived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each happens to the first call of a step; the second is answered, and the task completes."""
    asked: list[str] = []

    def look_up(host: Any, *rest: Any, **more: Any) -> Any:
        if host != "name.test":
            return system(host, *rest, **more)
        asked.append(host)
        if len(asked) == 1:
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return system("127.0.0.1", *rest, **more)

    system = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    async with HttpRig() as rig:
        kinds = {"late": late, "drip": drip(0.05), "reset": reset, "silence": silence}
        for name, bad in kinds.items():
            rig.on(f"/{name}", [bad, GOOD])
        rig.on("/name", GOOD)
        urls = {name: rig.url(f"/{name}") for name in kinds} | {"name": f"http://name.test:{rig.port}/name"}
        steps: list[Any] = [
            {"id": name, "tool": "http.get", "with": {"url": url}, "needs": [], "retry": {"times": 3, "delay": "20ms"},
             "timeout": "3s" if name in ("drip", "silence") else "1m"}
            for name, url in urls.items()
        ]  # fmt: skip
        allowed: Any = {"policy": {"networks": [f"127.0.0.1/32:{rig.port}"]}}
        async with Engine(tmp_path / "tasks.db", config=allowed) as engine:
            task = await engine.start(Plan.from_dict({"name": "net", "parallel": 5, "steps": steps}))
            ended = await task.result()
            assert ended.status == "completed", ended
            told = [event async for event in task.events(follow=False) if event.type == "step.retry_scheduled"]
    failed: dict[str | None, Any] = {event.step: event.data["error"] for event in told}
    assert set(failed) == {"drip", "reset", "silence", "name"}
    assert failed["name"]["code"] == "net_dns"
