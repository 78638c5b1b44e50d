"""Python values on their way into a plan: which keys take references, and how each is spelled."""

from collections.abc import Callable, Mapping
from typing import Final

from everstep.authoring.dump import dump
from everstep.authoring.hints import shape_of
from everstep.authoring.markers import Markers, binding
from everstep.authoring.ref import Ref, named
from everstep.authoring.shape import Place
from everstep.authoring.tool import FunctionTool
from everstep.domain.handles import Secret
from everstep.domain.suggest import STEP_KEYS, did_you_mean, suggest
from everstep.domain.values import JsonObject, JsonValue
from everstep.wire.keys import STEP

OPTIONS: Final = tuple(key.name for key in STEP.keys if key.name not in {"id", "tool", "with"})
"""The keys of a step that are keywords in Python."""


class Template(str):
    """Text that is spelled as in a plan file already, its bindings included."""

    __slots__ = ()


class Speller:
    """Spells the values of one plan."""

    def __init__(self, markers: Markers) -> None:
        self._markers = markers
        self._keys: Mapping[str, Callable[[str, object], JsonValue]] = {
            **dict.fromkeys(("title", "guidance", "when", "for_each", "resources"), self.bound),
            "needs": self._needs,
            "approve": self._approve,
            "fallback": self._fallback,
            "undo": self._call,
        }

    def options(self, options: Mapping[str, object]) -> JsonObject:
        """The keywords of a step."""
        spelled: JsonObject = {}
        for key, value in options.items():
            if key not in OPTIONS:
                raise TypeError(_unknown(key))
            spelled[key] = self._keys.get(key, self.written)(key, value)
        return spelled

    def bound(self, where: str, value: object) -> JsonValue:
        """A value in which references bind and text is literal."""
        if isinstance(value, Ref):
            if named(value).markers is not self._markers:
                raise TypeError(f"'{where}' holds {value!r} of another plan")
            return binding(named(value).text)
        if isinstance(value, Template):
            return str(value)
        if isinstance(value, Mapping):
            return {self._name(where, key): self.bound(where, item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.bound(where, item) for item in value]
        plain = _plain(where, value)
        if isinstance(plain, dict | list):
            return self.bound(where, plain)
        return self._markers.template(plain) if isinstance(plain, str) else plain

    def written(self, where: str, value: object) -> JsonValue:
        """A value that a plan must write out."""
        if isinstance(value, Ref) or (isinstance(value, str) and self._markers.holds(value)):
            raise TypeError(f"'{where}' must be written out, it takes no reference")
        if isinstance(value, Mapping):
            return {self._name(where, key): self.written(where, item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.written(where, item) for item in value]
        return _plain(where, value)

    def _name(self, where: str, key: object) -> str:
        if not isinstance(key, str) or self._markers.holds(key):
            raise TypeError(f"'{where}' has the key {key!r}; keys are text, and never hold references")
        return key

    def _needs(self, where: str, value: object) -> JsonValue:
        if not isinstance(value, list | tuple):
            raise TypeError(f"'{where}' is a list of steps")
        return [self._step(where, item) for item in value]

    def _step(self, where: str, value: object) -> JsonValue:
        if isinstance(value, Ref):
            if named(value).step is None:
                raise TypeError(f"'{where}' holds {value!r}; name the step itself")
            return named(value).step
        return self.written(where, value)

    def _approve(self, where: str, value: object) -> JsonValue:
        if not isinstance(value, Mapping):
            return self.bound(where, value)
        bound = {"title", "show"}
        return {
            key: self.bound(f"{where}.{key}", item) if key in bound else self.written(f"{where}.{key}", item)
            for key, item in value.items()
        }

    def _fallback(self, where: str, value: object) -> JsonValue:
        if not isinstance(value, list | tuple):
            raise TypeError(f"'{where}' is a list of {{'tool': …, 'with': …}} or {{'value': …}}")
        return [self._call(where, item) for item in value]

    def _call(self, where: str, value: object) -> JsonValue:
        """A call inside a step: of a fallback, of an undo."""
        if not isinstance(value, Mapping):
            raise TypeError(f"'{where}' is a map with 'tool' and 'with', not {value!r}")
        spell: Mapping[str, Callable[[str, object], JsonValue]] = {
            "with": self.bound,
            "value": self.bound,
            "approve": self._approve,
            "tool": lambda _, tool: tool_name(tool),
        }
        return {key: spell.get(key, self.written)(f"{where}.{key}", item) for key, item in value.items()}


def tool_name(tool: object) -> str:
    """The name of a tool given as its name or as the decorated function."""
    if isinstance(tool, FunctionTool):
        return tool.spec.name
    if isinstance(tool, str):
        return tool
    raise TypeError(f"{tool!r} is no tool; give its name, or decorate the function with @tool")


def input_schema(name: str, said: object) -> JsonValue:
    """An input given as type word, schema or Python type."""
    if said is Secret:
        return "secret"
    if isinstance(said, str | dict):
        return said
    return shape_of(said, Place(text=f"input '{name}'")).schema


def _plain(where: str, value: object) -> JsonValue:
    plain = dump(value)
    if plain is value and not (value is None or isinstance(value, bool | int | float | str)):
        raise TypeError(f"'{where}' holds {value!r}, which is not JSON")
    return plain


def _unknown(key: str) -> str:
    meant = suggest(key, OPTIONS, STEP_KEYS)
    if meant == "with":
        return f"a step has no '{key}'; its arguments are the third value: plan.step(id, tool, {{…}})"
    return did_you_mean(f"a step has no '{key}'", meant)
