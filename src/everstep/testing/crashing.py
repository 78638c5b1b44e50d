"""A store and tools that stand still at one boundary, as if the process had died there."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from everstep.adapters.stores.memory import MemoryStore
from everstep.domain.task import Command, NewTask, StepCommit
from everstep.domain.values import JsonValue
from everstep.ports.clock import Clock
from everstep.ports.store import Commit, Creation
from everstep.ports.tool import Call, Ctx
from everstep.testing.fakes import Fake

T = TypeVar("T")


class Boundary:
    """Counts boundaries; at the one that is wanted, time stands still for whoever passes."""

    def __init__(self, wanted: int, only: str = "") -> None:
        self._wanted = wanted
        self._only = only
        self._passed = 0
        self.reached: str | None = None

    async def __call__(self, point: str) -> None:
        """Pass, or never return."""
        self._passed += self._only in point
        if self._only in point and self._passed == self._wanted:
            self.reached = f"{self._wanted}: {point}"
            await asyncio.get_running_loop().create_future()


@runtime_checkable
class Cuttable(Protocol):
    """Tools whose calls can be cut off."""

    @property
    def busy(self) -> bool:
        """Whether a call is under way, in real time: the virtual clock must not run ahead of it."""

    def at(self, boundary: Boundary) -> "Cuttable":
        """The same, with this boundary inside each call."""


class CrashingStore(MemoryStore):
    """A store whose commits are boundaries."""

    def __init__(self, boundary: Boundary) -> None:
        super().__init__()
        self._boundary = boundary

    async def create_tasks(self, tasks: Sequence[NewTask]) -> Sequence[Creation]:
        """The task, and its first intents."""
        return await self._around("the task is created", lambda: super(CrashingStore, self).create_tasks(tasks))

    async def commit_steps(self, commits: Sequence[StepCommit]) -> Sequence[Commit]:
        """Outcomes and next intents."""
        drafts = [f"{one.body.TYPE} {one.step or ''}".strip() for commit in commits for one in commit.drafts]
        intents = [f"attempt.started {one.step}" for commit in commits for one in commit.proposals]
        said = ", ".join([*drafts, *intents])
        return await self._around(said, lambda: super(CrashingStore, self).commit_steps(commits))

    async def commit_commands(self, commands: Sequence[Command]) -> Sequence[Commit]:
        """Answers and other commands."""
        said = ", ".join(one.body.TYPE for command in commands for one in command.drafts)
        return await self._around(said, lambda: super(CrashingStore, self).commit_commands(commands))

    async def _around(self, what: str, write: Callable[[], Awaitable[T]]) -> T:
        await self._boundary(f"before the commit of {what}")
        written = await write()
        await self._boundary(f"after the commit of {what}")
        return written


class CrashingFake(Fake):
    """A fake whose calls can be cut off after their effect."""

    def __init__(self, orders: Fake, tool: str, boundary: Boundary) -> None:
        super().__init__(*orders.orders)
        self.effect = orders.effect
        self._tool = tool
        self._boundary = boundary

    async def call(self, call: Call, ctx: Ctx, clock: Clock) -> JsonValue:
        """As ordered; then perhaps never heard of again."""
        output = await super().call(call, ctx, clock)
        await self._boundary(f"inside the call of {self._tool} by {ctx.step_id}, after its effect")
        return output
