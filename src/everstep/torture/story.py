"""A child that has tasks retried, patched, forked, undone and made by other tasks, and dies in between.

    python -m everstep.torture.story FOLDER

Every life does what is left of the story, whatever the last one came to; at its end it leaves `result.json`. Like the
other child it uses the public doors only.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

from everstep import Engine, Misconfigured, Pause, Task, tool
from everstep.errors import Conflict
from everstep.torture.child import SETTINGS, Client, log_of
from everstep.torture.workload import Workload
from everstep.torture.world import EffectLog, trial_tools

CALL_S: Final = 0.01
LOOK_S: Final = 0.01
ENDED: Final = frozenset({"completed", "failed", "cancelled"})

_KID: Final = {"name": "kid", "steps": [{"id": "k", "tool": "trial.once", "with": {"value": 5}}],
               "outputs": {"value": "$${k.value}"}}  # fmt: skip
PLAN: Final[dict[str, Any]] = {
    "name": "story",
    "steps": [
        {
            "id": "a",
            "tool": "trial.once",
            "with": {"value": 1},
            "undo": {"tool": "trial.once", "with": {"value": "${a.value}"}},
        },
        {"id": "f", "tool": "story.flaky"},
        {"id": "q", "tool": "ask", "with": {"question": "go?"}},
        {"id": "s", "tool": "plan.run", "with": {"plan": _KID}},
        {"id": "c", "tool": "trial.verifiable", "with": {"value": "${s.value}"}},
    ],
    "finally": [{"id": "tidy", "tool": "trial.pure", "with": {"value": 3}}],
    "outputs": {"value": "${c.value}"},
}
OPS: Final[list[dict[str, Any]]] = [
    {"op": "append", "after": "c", "step": {"id": "z", "tool": "trial.once", "with": {"value": "${c.value}"}}},
    {"op": "set", "id": "c", "with": {"value": 7}},
]


class Story:
    """One life of it."""

    def __init__(self, folder: Path, engine: Engine, log: EffectLog) -> None:
        self._folder = folder
        self._engine = engine
        self._log = log
        self._client = Client(folder)

    async def tell(self) -> None:
        """To its end."""
        path = self._folder / "story.plan.json"
        path.write_text(json.dumps(PLAN), encoding="utf-8")
        main = await self._engine.start(path, key="main")
        if (await self._ended(main)).status == "failed":
            (self._folder / "fixed").touch()
            await self._said("retry", main, main.retry())
            await self._ended(main)
        await self._ended(await main.fork("c", key="fork"))
        try:
            await main.undo()
        except Conflict as refused:
            if refused.code != "nothing_to_undo":
                raise
        for task in await self._engine.list(limit=50):
            await self._ended(task)

    async def _ended(self, task: Task) -> Task:
        """Wait for its end; answer whoever asks meanwhile."""
        while (await task.refresh()).status not in ENDED:
            for pause in await self._engine.inbox():
                await self._answer(pause)
            await asyncio.sleep(LOOK_S)
        return task

    async def _answer(self, pause: Pause) -> None:
        if pause.type == "uncertainOutcome":
            made = self._log.find(pause.task, str(pause.step))
            await (pause.not_happened() if made is None else pause.happened(made.output))
        elif pause.type == "inputRequired":
            asking = await self._engine.get(pause.task)
            if asking.revision == 1:
                await asking.patch(OPS, 1)
            await pause.answer("yes")

    async def _said(self, op: str, task: Task, work: Any) -> None:  # noqa: ANN401 -- any coroutine
        self._client.say("invoke", op, task=task.id)
        await work
        self._client.say("ok", op, task=task.id)


async def carry(folder: Path) -> None:
    """One life."""
    store = folder / "store.db"

    @tool("story.flaky", effect="pure")
    async def flaky() -> dict[str, str]:
        if not (folder / "fixed").exists():
            raise Misconfigured("not yet")
        return {}

    log = log_of(folder)
    async with Engine(store, tools=[*trial_tools(log, Workload(call_s=CALL_S)), flaky], config=SETTINGS) as engine:
        await Story(folder, engine, log).tell()
        said = [{"id": task.id, "status": task.status, "outputs": task.outputs} for task in await engine.list(limit=50)]
    (folder / "result.json").write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(carry(Path(sys.argv[1])))
