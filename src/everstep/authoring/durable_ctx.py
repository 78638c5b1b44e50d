"""`ctx` of a durable function: every call through it becomes a step of its task."""

import re
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, TypeVar

from everstep.authoring.dump import dump
from everstep.authoring.keys import OPTIONS, Speller, tool_name
from everstep.authoring.markers import Markers
from everstep.domain.errors import PlanError
from everstep.domain.plan import StepSpec
from everstep.domain.problem import Problem
from everstep.domain.suggest import did_you_mean, suggest
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.script import Ask, Stage
from everstep.wire.keys import STEP
from everstep.wire.shape import Place

T = TypeVar("T")

ID: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
WORD_CHARS: Final = 40
"""Of a tool's name in a step's id; the rest is for numbers and branches."""
PYTHONS_OWN: Final = frozenset({"bind", "needs", "when", "for_each", "parallel", "resources"})
"""Keys of a step that code says in Python: variables, order, conditions, loops."""
CALL_OPTIONS: Final = tuple(option for option in OPTIONS if option not in PYTHONS_OWN)


class DurableCtx:
    """What a durable function is given: every call through it is a step of its task."""

    __slots__ = ("_speller", "_stage")

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._speller = Speller(Markers())

    def call(
        self,
        tool: object,
        arguments: Mapping[str, object] | None = None,
        /,
        *,
        id: str | None = None,
        **options: object,
    ) -> Awaitable[Any]:
        """Call a tool, by name or as the decorated function; keywords are the keys of a step.

        What it returns is what was recorded. A call that fails for good raises ToolError; a skipped one gives None.
        """
        name = tool_name(tool)
        return self._ask(name, dict(arguments or {}), id or self._stage.name(_word(name)), options)

    def gather(self, *calls: Awaitable[T], limit: int | None = None) -> Awaitable[list[T]]:
        """All of these at the same time, or `limit` of them; what they return, in their order."""
        if limit is not None and limit < 1:
            raise ValueError("limit is a number of calls at the same time, at least 1")
        return self._stage.gather(calls, limit)

    def ask(self, question: str, schema: JsonValue = "string", *, id: str | None = None) -> Awaitable[Any]:
        """Ask whoever watches; goes on with the answer."""
        return self._ask("ask", {"question": question, "schema": schema}, id or self._stage.name("ask"), {})

    def approve(
        self,
        title: str,
        show: object = None,
        *,
        edit: Sequence[str] | bool = (),
        id: str | None = None,
        **options: object,
    ) -> Awaitable[Any]:
        """Ask for leave; a refusal raises ToolError. Returns what was shown, as the approver may have edited it."""
        shown = dict(show) if isinstance(show, Mapping) else {} if show is None else {"show": show}
        asked = {"title": title, "edit": edit if isinstance(edit, bool) else list(edit), **options}
        return self._ask("code.approve", shown, id or self._stage.name("approve"), {"approve": asked})

    def sleep(self, length: str, *, id: str | None = None) -> Awaitable[Any]:
        """Wait so long, durably: `1h30m`."""
        return self._ask("wait", {"for": length}, id or self._stage.name("sleep"), {})

    def wait_event(
        self, event: str, key: str | None = None, timeout: str | None = None, *, id: str | None = None
    ) -> Awaitable[Any]:
        """Wait for a signal from outside."""
        said = {"event": event, "key": key, "timeout": timeout}
        arguments: JsonObject = {name: value for name, value in said.items() if value is not None}
        return self._ask("wait", arguments, id or self._stage.name("wait"), {})

    def now(self) -> Awaitable[str]:
        """The time as RFC 3339 text; the same whenever the function is run again."""
        return self._ask("code.now", {}, self._stage.name("now"), {})

    def random(self) -> Awaitable[float]:
        """A number from 0 to 1; the same whenever the function is run again."""
        return self._ask("code.random", {}, self._stage.name("random"), {})

    def uuid(self) -> Awaitable[str]:
        """An id nobody else has; the same whenever the function is run again."""
        return self._ask("code.uuid", {}, self._stage.name("uuid"), {})

    def stages(self, names: Sequence[str]) -> None:
        """What the function will come by, as tools or step ids, for whoever watches its progress."""
        self._stage.expect([str(name) for name in names])

    def _ask(
        self, tool: str, arguments: Mapping[str, object], id: str, options: Mapping[str, object]
    ) -> Awaitable[Any]:
        for option in options:
            if option not in CALL_OPTIONS:
                raise TypeError(_no_option(option))
        given = dump(dict(arguments))
        assert isinstance(given, dict)
        return self._stage.ask(Ask(spec=self._step(tool, id, options), arguments=given))

    def _step(self, tool: str, id: str, options: Mapping[str, object]) -> StepSpec:
        if not ID.fullmatch(id):
            raise ValueError(f"'{id}' is not a step id: letters, digits and _, at most 63")
        notes: list[Problem] = []
        said: JsonObject = {"on_error": "continue", "needs": []}
        said |= self._speller.options(options)
        step = STEP.read({"id": id, "tool": tool, **said}, Place(notes, label=f"step '{id}'"))
        if notes or not isinstance(step, StepSpec):
            raise PlanError(f"step '{id}': {notes[0].message}", tuple(notes))
        return step


def _word(tool: str) -> str:
    return re.sub(r"[^a-z0-9_]", "_", tool.lower())[:WORD_CHARS]


def _no_option(option: str) -> str:
    if option in PYTHONS_OWN:
        return f"a call has no '{option}': say it in Python"
    return did_you_mean(f"a call has no '{option}'", suggest(option, CALL_OPTIONS))
