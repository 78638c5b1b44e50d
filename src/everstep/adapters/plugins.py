"""Tools that the operator's configuration names: installed packages by entry point, else modules that can be imported.

Nothing is imported that is not named. A package owns its prefix: the entry point `acme` serves `acme.*`, and two
packages cannot own the same one.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from everstep.domain.errors import SettingsError
from everstep.domain.record import record

GROUP: Final = "everstep.tools"
_REPAIR: Final = "correct `tools` in everstep.toml"


@record
class Plugin:
    """What a name stands for; `prefix`: the names its tools must have."""

    name: str
    content: Any
    prefix: str | None = None

    def values(self, kinds: tuple[type, ...]) -> list[object]:
        """Of a module what it holds of these kinds; of a class an object of it; else the object itself."""
        if isinstance(self.content, ModuleType):
            return [value for value in vars(self.content).values() if isinstance(value, kinds)]
        return [self.content() if isinstance(self.content, type) else self.content]

    def refuse_strangers(self, tools: list[str]) -> None:
        """A package may not serve tools under another's name."""
        strange = [tool for tool in tools if self.prefix and tool.partition(".")[0] != self.prefix]
        if strange:
            raise SettingsError(
                f"tools: the package '{self.name}' owns '{self.prefix}.*', but serves '{strange[0]}'",
                what_to_do=f"leave '{self.name}' out of `tools`, or use a release of it that keeps to its prefix",
            )


def plugin(name: str) -> Plugin:
    """The tools of that name; raises SettingsError. The project folder can be imported from."""
    from importlib.metadata import entry_points  # brings half of the standard library with it

    owners = [one for one in entry_points(group=GROUP) if one.name == name]
    if len({one.value for one in owners}) > 1:
        values = " and ".join(sorted({one.value for one in owners}))
        raise SettingsError(f"tools: two packages own '{name}': {values}", what_to_do="uninstall one of them")
    if owners:
        return Plugin(name=name, content=_loaded(owners[0]), prefix=name)
    if "" not in sys.path:
        sys.path.insert(0, "")
    module, _, attribute = name.partition(":")
    try:
        content: Any = import_module(module)
    except ImportError as error:
        raise SettingsError(f"tools: cannot import '{name}': {error}", what_to_do=_REPAIR) from error
    if attribute and not hasattr(content, attribute):
        raise SettingsError(f"tools: '{module}' has no '{attribute}'", what_to_do=_REPAIR)
    return Plugin(name=name, content=getattr(content, attribute) if attribute else content)


def _loaded(entry: Any) -> Any:
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"tools: cannot load '{entry.name}': {error}", what_to_do=_REPAIR) from error
