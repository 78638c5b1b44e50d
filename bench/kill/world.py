"""What every engine is to call, in its own process: only the standard library is there.

The first line that a call appends *is* its effect: whole or not at all, so the log shows what was made whenever the
process dies.
"""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

MODULUS = 2**31 - 1


class World:
    """The folder of one trial: its workload, the log of effects, and the result once there is one."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        told = json.loads((self.folder / "workload.json").read_text(encoding="utf-8"))
        self.start: int = told["seed"] + 1
        self.call_s: float = told["call_s"]
        plan = json.loads((self.folder / "trial.plan.json").read_text(encoding="utf-8"))
        self.steps = [(step["id"], step["tool"] == "trial.once") for step in plan["steps"]]
        self._log = os.open(self.folder / "effects.jsonl", os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    async def call(self, step: str, value: int) -> int:
        """One effect, and a moment in which a kill can land."""
        made = (value * 48271 + 11) % MODULUS
        self._write("start", step, made)
        await asyncio.sleep(self.call_s)
        self._write("end", step, made)
        return made

    def made(self, step: str) -> int | None:
        """What a person who looks finds; None: it was not made."""
        lines = (self.folder / "effects.jsonl").read_text(encoding="utf-8").splitlines()
        found = [line for line in map(json.loads, lines) if line["step"] == step]
        return found[0]["output"] if found else None

    def _write(self, what: str, step: str, output: int) -> None:
        line = {"task": "trial", "step": step, "attempt": 1, "key": step, "pid": os.getpid(), "incarnation": "",
                "what": what, "at": time.time_ns() // 1_000_000, "output": output}  # fmt: skip
        os.write(self._log, json.dumps(line).encode() + b"\n")

    def tell(self, value: int, recorded: list[str], asked: dict[str, int] | None = None) -> None:
        """The task has ended: what the engine says of it."""
        said: dict[str, Any] = {
            "outputs": {"value": value},
            "recorded": dict.fromkeys(recorded, 1),
            "asked": asked or {},
            "decisions": {},
        }
        path = self.folder / "result.tmp"
        path.write_text(json.dumps(said), encoding="utf-8")
        path.rename(self.folder / "result.json")
        os._exit(0)  # some engines keep threads that do not end
