"""Folders beside the workspace that the configuration names: `docs:guide/a.md`. A call works in one of them."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from everstep.adapters.paths import names_of
from everstep.domain.errors import SettingsError
from everstep.domain.record import record
from everstep.domain.values import JsonValue
from everstep.ports.tool import Denied, Misconfigured
from everstep.settings import Settings

_PATHS: Final = ("path", "from", "to")


@record
class Root:
    """A folder, and whether files in it may be changed."""

    path: Path
    writable: bool = False


@record
class Placed:
    """A call inside one root: its arguments without the root's name."""

    name: str
    arguments: dict[str, Any]
    source: tuple[str, str] | None = None
    """Root and path that a copy comes from, if that is another one."""

    def told(self, output: JsonValue) -> JsonValue:
        """What it gives, with paths as a plan would name them."""
        if not self.name or not isinstance(output, dict):
            return output
        named = {key: self._named(value) for key, value in output.items() if key == "path"}
        if isinstance(entries := output.get("entries"), list):
            named["entries"] = [{**one, "path": self._named(one["path"])} for one in entries if isinstance(one, dict)]
        if isinstance(changed := output.get("changed"), list):
            named["changed"] = [self._named(one) for one in changed]
        return {**output, **named}

    def _named(self, path: JsonValue) -> JsonValue:
        return f"{self.name}:{path}"


@record
class Roots:
    """All of them, by name."""

    known: Mapping[str, Root] = field(default_factory=dict)

    def split(self, path: str) -> tuple[str, str]:
        """The root's name and the path in it; a name that is none stays part of the path, and is refused there."""
        name, colon, rest = path.partition(":")
        return (name, rest) if colon and name in self.known else ("", path)

    def check(self, path: str) -> None:
        """Raises what is wrong with a path."""
        root, rest = self.split(path)
        names_of(rest or "." if root else rest)

    def place(self, tool: str, arguments: dict[str, Any]) -> Placed:
        """Which root a call works in; raises Misconfigured if it is more than one."""
        ops = arguments.get("ops")
        found: set[str] = set()
        if isinstance(ops, list):
            arguments = {**arguments, "ops": [self._stripped(one, found) for one in ops]}
        if tool == "file.copy":
            source, (to, path) = self.split(arguments["from"]), self.split(arguments["to"])
            if source[0] != to:
                return Placed(name=to, arguments={**arguments, "to": path}, source=source)
        plain = self._stripped(arguments, found)
        if len(found) > 1:
            names = " and ".join(repr(one or "the workspace") for one in sorted(found))
            what = f"one call works in one root, not in {names}"
            raise Misconfigured(what, code="bad_argument")
        return Placed(name=next(iter(found), ""), arguments=plain)

    def _stripped(self, arguments: dict[str, Any], found: set[str]) -> dict[str, Any]:
        stripped = dict(arguments)
        for key in _PATHS:
            if isinstance(path := arguments.get(key), str):
                name, stripped[key] = self.split(path)
                found.add(name)
        return stripped

    def folder(self, name: str, workdir: Path, *, change: bool) -> Path:
        """Where it is; refused where files may not be changed."""
        if not name:
            return workdir
        root = self.known[name]
        if change and not root.writable:
            raise Denied(
                f"files below '{name}:' may only be read",
                code="policy_denied",
                what_to_do=f'if they may be changed: [file.roots.{name}] mode = "rw"',
            )
        return root.path


def roots_of(settings: Settings) -> Roots:
    """As configured; seen from the project folder."""
    known = {}
    for name, table in settings.tables("file.roots").items():
        path = settings.base / str(table.get("path") or "")
        if not table.get("path") or not path.is_dir():
            raise SettingsError(f"'file.roots.{name}' names no folder: {path}", what_to_do="correct its `path`")
        known[name] = Root(path=path, writable=table.get("mode") == "rw")
    return Roots(known=known)
