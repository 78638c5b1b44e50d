"""Secrets of the operator: handed in, from `EVERSTEP_SECRET_<NAME>`, or files of a folder that only we can read.

Everstep keeps none: they are read at start and live in memory.
"""

import os
import re
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from everstep.domain.errors import SettingsError
from everstep.domain.redact import Redactor

VARIABLE: Final = "EVERSTEP_SECRET_"
LOCAL: Final = "local"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_BYTES_MAX: Final = 65_536


class KnownSecrets:
    """All of them, and who may use which: `local` any, others those that are granted to them."""

    def __init__(self, values: Mapping[str, str], grants: Mapping[str, Iterable[str]]) -> None:
        self._values = dict(values)
        self._grants = {owner: frozenset(names) for owner, names in grants.items()}
        try:
            self.redactor = Redactor(self._values)
        except ValueError as error:
            raise SettingsError(str(error), what_to_do="use a longer one") from error

    def get(self, name: str, owner: str) -> str | None:
        """The value, if there is one and this owner may use it."""
        return self._values.get(name) if name in self.names(owner) else None

    def names(self, owner: str) -> frozenset[str]:
        """What this owner may use."""
        if owner not in self._grants:
            return frozenset(self._values) if owner == LOCAL else frozenset()
        return self._grants[owner] & self._values.keys()


def gather(given: Mapping[str, str], env: Mapping[str, str], folder: Path | None) -> dict[str, str]:
    """What is handed in wins over the environment, that over files; raises SettingsError."""
    found = _of_folder(folder) if folder is not None else {}
    for name, value in env.items():
        if name.startswith(VARIABLE):
            found[_checked(name.removeprefix(VARIABLE).lower(), name)] = value
    for name, value in given.items():
        found[_checked(name, "Engine(secrets=…)")] = value
    return found


def _of_folder(folder: Path) -> dict[str, str]:
    found = {}
    try:
        files = sorted(entry for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    except OSError as error:
        raise SettingsError(f"secrets.dir: {folder}: {error.strerror}", what_to_do="correct 'secrets.dir'") from error
    for file in files:
        status = file.stat()
        if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid not in {os.getuid(), 0}:
            raise SettingsError(f"others may read the secret {file}", what_to_do=f"chmod 600 {file}")
        if status.st_size > _BYTES_MAX:
            raise SettingsError(f"the secret {file} is larger than {_BYTES_MAX} bytes", what_to_do="use a shorter one")
        found[_checked(file.name, str(file))] = file.read_text(encoding="utf-8").removesuffix("\n")
    return found


def _checked(name: str, place: str) -> str:
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{place}: '{name}' is no name for a secret", what_to_do="small letters, digits and _, a letter first"
        )
    return name
