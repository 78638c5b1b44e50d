"""Settings: read once (flags, environment, TOML files), checked by one table, passed down as values.

    keys.py    THE table: every key with its kind, default, bounds and meaning
    files.py   configuration files: where they are, what they say, on which line
    values.py  what comes of it: `Settings`

Nearer words win, key by key: flags > environment > `everstep.toml` > `[tool.everstep]` of `pyproject.toml` > the user's
own file > defaults. A relative path counts from the file that names it, without one from the project folder, so that
the same command means the same store wherever in the project it is given. Nobody else reads a variable or a
configuration file; this room knows none of those who use what it read.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from everstep.domain.values import JsonValue
from everstep.settings.files import config_files, flatten, project_folder
from everstep.settings.keys import KEYS, checked, known
from everstep.settings.values import Said, Settings, build

__all__ = ["Settings", "load_settings"]

PREFIX: Final = "EVERSTEP_"
CONFIG: Final = "EVERSTEP_CONFIG"
TOKEN: Final = "EVERSTEP_TOKEN"  # noqa: S105 -- the name of a variable
RESERVED: Final = frozenset({CONFIG, TOKEN, "EVERSTEP_FAILPOINTS", "EVERSTEP_NO_DASHBOARD"})
"""Variables that are no settings. So is every secret, and what tests hand to themselves and to their tools."""
RESERVED_PREFIXES: Final = ("EVERSTEP_SECRET_", "EVERSTEP_EFFECT_LOG", "EVERSTEP_TEST_")


def load_settings(
    flags: Mapping[str, JsonValue], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> Settings:
    """Everything that was said, merged and checked; raises SettingsError.

    Flags are named as keys, dotted or nested; None means "not given". `config` names a file to read instead of the
    nearest `everstep.toml`.
    """
    here = (cwd or Path.cwd()).absolute()
    variables = os.environ if env is None else env
    named = flags.get("config") or variables.get(CONFIG) or None
    files = config_files(here, variables, named if isinstance(named, str) else None)
    base = project_folder(here, files)
    said = {key.name: Said(value=key.usual, source="default", folder=base) for key in KEYS}
    for file in reversed(files):
        for name, value, place in file.entries():
            said[name] = Said(value=checked(known(name, place), value, place), source=place, folder=file.path.parent)
    said.update(_from_environment(variables, base))
    said.update(_from_flags(flags, base))
    return build(said, base, _runtime(variables), variables.get(TOKEN, ""))


def _runtime(variables: Mapping[str, str]) -> Path:
    """A folder of the user's own for what does not outlive a session."""
    given = variables.get("XDG_RUNTIME_DIR")
    temporary = variables.get("TMPDIR") or "/tmp"  # noqa: S108 -- a folder of our own in it, whose owner is checked
    return Path(given) / "everstep" if given else Path(temporary) / f"everstep-{os.getuid()}"


def _from_environment(variables: Mapping[str, str], base: Path) -> dict[str, Said]:
    """`EVERSTEP_ENGINE__TASKS` is `engine.tasks`; an empty variable says nothing."""
    said = {}
    for variable in sorted(variables):
        text = variables[variable]
        ours = variable.startswith(PREFIX) and variable not in RESERVED
        if text and ours and not variable.startswith(RESERVED_PREFIXES):
            key = known(variable.removeprefix(PREFIX).lower().replace("__", "."), variable)
            value = checked(key, key.kind.from_text(text), variable)
            said[key.name] = Said(value=value, source=variable, folder=base)
    return said


def _from_flags(flags: Mapping[str, JsonValue], base: Path) -> dict[str, Said]:
    said = {}
    for name, value in flatten(flags):
        if name != "config" and value is not None:
            place = f"the option '{name}'"
            said[name] = Said(value=checked(known(name, place), value, place), source="flag", folder=base)
    return said
