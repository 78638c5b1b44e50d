"""What a task can be asked to do over: retry, fork, patch, undo; each first as a question, with `dry_run`."""

from collections.abc import Mapping, Sequence
from typing import Literal, Self, overload

from everstep.domain.errors import PlanError
from everstep.domain.events import Who
from everstep.domain.task import TaskState
from everstep.domain.values import JsonObject, JsonValue
from everstep.domain.wishes import Fork, Patch, Retry, Undo
from everstep.facade.desk import Desk
from everstep.wire.again import again_json, revised_json, undo_json
from everstep.wire.change import read_ops


class ReworkedTask:
    """The part of a `Task` that goes back, changes what comes, or takes back what was done."""

    def __init__(self, desk: Desk, who: Who, state: TaskState) -> None:
        self._desk = desk
        self._who = who
        self._state = state

    @overload
    async def retry(
        self,
        from_step: str | None = None,
        arguments: Mapping[str, JsonObject] | None = None,
        *,
        confirm_effects: bool = False,
        note: str | None = None,
        dry_run: Literal[False] = False,
    ) -> Self: ...
    @overload
    async def retry(
        self,
        from_step: str | None = None,
        arguments: Mapping[str, JsonObject] | None = None,
        *,
        confirm_effects: bool = False,
        note: str | None = None,
        dry_run: Literal[True],
    ) -> JsonObject: ...
    async def retry(
        self,
        from_step: str | None = None,
        arguments: Mapping[str, JsonObject] | None = None,
        *,
        confirm_effects: bool = False,
        note: str | None = None,
        dry_run: bool = False,
    ) -> Self | JsonObject:
        """The same task again, from a step on (the first that failed). What is kept stands."""
        wish = Retry(from_step=from_step, arguments=arguments or {}, note=note, confirm_effects=confirm_effects)
        if dry_run:
            return again_json(await self._desk.plan_retry(self._state.id, self._who, wish))
        self._state = await self._desk.retry(self._state.id, self._who, wish)
        return self

    @overload
    async def fork(
        self,
        from_step: str,
        inputs: JsonObject | None = None,
        arguments: Mapping[str, JsonObject] | None = None,
        *,
        key: str | None = None,
        title: str | None = None,
        note: str | None = None,
        dry_run: Literal[False] = False,
    ) -> Self: ...
    @overload
    async def fork(
        self,
        from_step: str,
        inputs: JsonObject | None = None,
        arguments: Mapping[str, JsonObject] | None = None,
        *,
        key: str | None = None,
        title: str | None = None,
        note: str | None = None,
        dry_run: Literal[True],
    ) -> JsonObject: ...
    async def fork(
        self,
        from_step: str,
        inputs: JsonObject | None = None,
        arguments: Mapping[str, JsonObject] | None = None,
        *,
        key: str | None = None,
        title: str | None = None,
        note: str | None = None,
        dry_run: bool = False,
    ) -> Self | JsonObject:
        """A new task that begins with the outcomes of this one, up to a step."""
        wish = Fork(
            from_step=from_step, inputs=inputs or {}, arguments=arguments or {}, key=key, title=title, note=note
        )
        if dry_run:
            return again_json(await self._desk.plan_fork(self._state.id, self._who, wish))
        return type(self)(self._desk, self._who, await self._desk.fork(self._state.id, self._who, wish))

    async def patch(
        self, ops: Sequence[JsonObject], base_revision: int, *, note: str | None = None, dry_run: bool = False
    ) -> JsonObject:
        """Change what has not begun, all of it or nothing; gives `revision`, `digest` and `diff`."""
        given: list[JsonValue] = [*ops]
        read, problems = read_ops(given)
        if problems:
            raise PlanError(f"the patch has problems: {problems[0].message}", problems)
        wish = Patch(base_revision=base_revision, ops=read, trusted=True, note=note)
        change = self._desk.plan_patch if dry_run else self._desk.patch
        done = await change(self._state.id, self._who, wish)
        self._state = done.task
        return revised_json(done.revision, done.digest, done.diff.diff)

    @overload
    async def undo(
        self, steps: Sequence[str] | None = None, *, note: str | None = None, dry_run: Literal[False] = False
    ) -> Self: ...
    @overload
    async def undo(
        self, steps: Sequence[str] | None = None, *, note: str | None = None, dry_run: Literal[True]
    ) -> JsonObject: ...
    async def undo(
        self, steps: Sequence[str] | None = None, *, note: str | None = None, dry_run: bool = False
    ) -> Self | JsonObject:
        """A new task that takes back what this one did: all that completed, or these steps."""
        wish = Undo(steps=steps, note=note)
        if dry_run:
            return undo_json(await self._desk.plan_undo(self._state.id, self._who, wish))
        return type(self)(self._desk, self._who, await self._desk.undo(self._state.id, self._who, wish))
