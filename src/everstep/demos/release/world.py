"""The registry: overloaded twice, then it takes a release, and the same key only once."""

import json

from everstep.demos.folder import WORLD, happened
from everstep.demos.rig import World
from everstep.testing.rig import Asked, Writer, answer


async def build(world: World) -> None:
    """One site."""
    registry = await world.site("registry")
    taken: dict[str, int] = {
        line["key"]: number for number, line in enumerate(world.folder.world(), 1) if line["step"] == "publish"
    }

    async def release(asked: Asked, writer: Writer) -> bool:
        key = asked.headers.get("idempotency-key", "")
        if key not in taken:
            taken[key] = len(taken) + 1
            tag = json.loads(asked.body)["tag"]
            happened(world.folder.path / WORLD, step="publish", key=key, tag=tag)
        return await answer(201, {"id": taken[key]})(asked, writer)

    busy = answer(503, {"error": "overloaded"})
    registry.on("/releases", [release] if taken else [busy, busy, release])
