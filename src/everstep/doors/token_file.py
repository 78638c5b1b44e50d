"""The file with the local user's token: made once, readable by nobody else. Whoever can read it may do everything."""

import os
import stat
from pathlib import Path
from typing import Final

from everstep.domain.access import ALL_SCOPES
from everstep.domain.actors import ActorKind
from everstep.domain.errors import NotAllowed, SettingsError
from everstep.facade.access import AccessDesk, NewToken

PREFIX: Final = "es_"


def read_token(path: Path) -> str | None:
    """The token in the file; None if there is no file. Raises NotAllowed where others can read it too."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise SettingsError(f"{path} is a folder", what_to_do="name a file in it for the token")
        if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid != os.geteuid():
            raise NotAllowed(
                f"others can read the token in {path}", what_to_do=f"chmod 600 {path}; or make a new one: rm {path}"
            )
        value = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SettingsError(f"cannot read the token in {path}", what_to_do=f"make a new one: rm {path}") from error
    if not value.startswith(PREFIX):
        raise SettingsError(f"{path} holds no token", what_to_do=f"make a new one: rm {path}")
    return value


async def ensure_token(path: Path, owner: str, access: AccessDesk) -> str:
    """The token of the local user, known to the store; drawn and written if there is none."""
    value = read_token(path)
    if value is not None and await access.authenticate(value) is not None:
        return value
    wanted = NewToken(name="local", owner=owner, actor_kind=ActorKind.HUMAN, actor_id=owner, scopes=ALL_SCOPES)
    issued = await access.issue(wanted, value=value)
    if value is None:
        _write(path, issued.value)
    return issued.value


def _write(path: Path, value: str) -> None:
    """Private from its first moment on."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{value}\n")
