"""A loop of 20 questions to a model, in a process that is killed: `python -m tests.fault.research FOLDER URL`."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from everstep import Engine, durable

CALLS = 20
MOVE = {
    "type": "object",
    "properties": {"action": {"enum": ["look", "done"]}, "note": {"type": "string"}},
    "required": ["action", "note"],
}


@durable("research", version="1")
async def research(ctx: Any, topic: str) -> dict[str, Any]:
    """Ask until the model says that it is done."""
    notes: list[str] = []
    while True:
        asked = {"prompt": f"{topic}: {len(notes)} {' '.join(notes)}", "schema": MOVE}
        move = (await ctx.call("llm.json", asked))["value"]
        notes.append(move["note"])
        if move["action"] == "done":
            return {"notes": notes}


async def main(folder: Path, url: str) -> None:
    endpoint = {"url": url, "model": "m", "price_in": 1, "price_out": 2}
    config: Any = {"llm.endpoints.rig": endpoint, "rates": {"llm.rig": "10000/1s"}, "engine": {"max_recoveries": 100}}
    async with Engine(folder / "store.db", config=config) as engine:
        result = await engine.run(research, {"topic": "solar"})
    told = {"task": result.task_id, "status": result.status, "outputs": result.outputs, "error": result.error}
    (folder / "result.json").write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
