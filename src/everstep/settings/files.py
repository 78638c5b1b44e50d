"""Configuration files: where they are, what they say, and on which line. Nothing here knows what a key means."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.settings.keys import BY_NAME, declares, refused

FILE: Final = "everstep.toml"
PROJECT: Final = "pyproject.toml"
STATE: Final = ".everstep"
"""The folder that the engine makes in a project."""


@record
class ConfigFile:
    """One file: the table in it that is ours, and where that stands in its text."""

    path: Path
    table: JsonObject
    text: str
    above: str = ""

    def entries(self) -> Iterator[tuple[str, JsonValue, str]]:
        """Key, value and place of all it says."""
        for name, value in flatten(self.table):
            line = line_of(self.text, self.above + name)
            yield name, value, str(self.path) if line is None else f"{self.path}:{line}"


def config_files(here: Path, variables: Mapping[str, str], named: str | None) -> list[ConfigFile]:
    """All that count, the one with the last word first; raises SettingsError for one that cannot be read."""
    files = []
    first = _nearest(here, FILE) if named is None else here / Path(named).expanduser()
    if first is not None:
        files.append(_read(first))
    project = _nearest(here, PROJECT)
    if project is not None and _MAY_BE_OURS.search(project.read_bytes()):
        whole = _read(project)
        tools = whole.table.get("tool")
        ours = tools.get("everstep") if isinstance(tools, dict) else None
        if isinstance(ours, dict):
            files.append(ConfigFile(path=project, table=ours, text=whole.text, above="tool.everstep."))
    own = _own_file(variables)
    if own is not None and own.is_file():
        files.append(_read(own))
    return files


def project_folder(here: Path, files: Sequence[ConfigFile]) -> Path:
    """The nearest folder that holds `.everstep/` or the project's configuration, else this one."""
    configured = {file.path.parent for file in files if file.path.name in (FILE, PROJECT)}
    return next((at for at in (here, *here.parents) if at in configured or (at / STATE).is_dir()), here)


def flatten(table: Mapping[str, JsonValue], above: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Nested tables as dotted keys."""
    for name, value in table.items():
        if value == {} and declares(above + name):
            yield above + name, value
        elif isinstance(value, Mapping) and above + name not in BY_NAME:
            yield from flatten(value, f"{above}{name}.")
        else:
            yield above + name, value


def _nearest(here: Path, name: str) -> Path | None:
    return next((folder / name for folder in (here, *here.parents) if (folder / name).is_file()), None)


def _own_file(variables: Mapping[str, str]) -> Path | None:
    """The user's, for all projects."""
    home = variables.get("HOME")
    folder = variables.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else None)
    return None if folder is None else Path(folder) / "everstep" / "config.toml"


def _read(path: Path) -> ConfigFile:
    import tomllib  # noqa: PLC0415 -- most of the time there is no file

    try:
        text = path.read_text(encoding="utf-8")
        return ConfigFile(path=path, table=tomllib.loads(text), text=text)
    except OSError as error:
        raise refused(str(path), f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise refused(str(path), f"is not TOML in UTF-8: {error}") from None


_MAY_BE_OURS: Final = re.compile(rb"""tool["']?\s*\.\s*["']?everstep|^\s*\[?\s*["']?tool["']?\s*[]=]""", re.MULTILINE)
"""Most projects that use us say nothing here: theirs need not be read as a whole."""
_NAME: Final = r"[A-Za-z0-9_.\"' -]+?"
_HEADER: Final = re.compile(rf"\s*\[\s*({_NAME})\s*\]")
_GIVEN: Final = re.compile(rf"\s*({_NAME})\s*=")


def line_of(text: str, name: str) -> int | None:
    """Where a key is given, if it is written in one of the usual ways; for a refusal, not for reading."""
    above = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            above = f"{header[1]}."
        elif (given := _GIVEN.match(line)) and re.sub(r"[\"' ]", "", above + given[1]) == name:
            return number
    return None
