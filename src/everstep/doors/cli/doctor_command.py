"""`everstep doctor`: what this machine and this store can promise, each finding with the line that repairs it."""

import os
import platform
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import click

from everstep.domain.errors import EverstepError, SettingsError
from everstep.doors.cli.bench import open_keeping
from everstep.doors.cli.connect import Opening, perform_steps, settings_of, shown
from everstep.doors.cli.session import Session, session
from everstep.doors.cli.talk import Ask
from everstep.doors.cli.verbs import Verb
from everstep.doors.cli.words import safe, size
from everstep.doors.local.client import find_engine
from everstep.doors.local.place import read_lock
from everstep.settings import Settings

Status: TypeAlias = Literal["ok", "warning", "failed"]

PYTHON_MIN: Final = (3, 11)
SQLITE_MIN: Final = (3, 51, 3)
FREE_BYTES_MIN: Final = 500_000_000
_MARKS: Final = {"ok": ("ok", "green"), "warning": ("??", "yellow"), "failed": ("!!", "red")}


class Check(NamedTuple):
    """One finding."""

    name: str
    status: Status
    detail: str
    fix: str | None = None


@click.command(cls=Verb)
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely: file modes.")
def doctor(*, fix: bool) -> int:
    """Check Python, SQLite, settings, the store, its lock, disk and file modes; exit 1 if something fails."""
    current = session()
    checks = [*_machine()]
    try:
        settings = settings_of(current)
    except SettingsError as error:
        checks.append(Check("settings", "failed", error.message, "correct the line, or remove it"))
        return tell(current, checks)
    checks.append(_settings(settings))

    async def act(opening: Opening) -> int:
        if fix:
            _repair(settings)
        if settings.store_path is None:
            found = [*checks, await _database(settings)]
        else:
            found = [*checks, *_place(settings), await _holder(settings), *_modes(settings)]
        found += [await _tools(opening), *await _walls(settings)]
        return tell(current, found)

    return perform_steps(act)


def tell(session: Session, checks: list[Check]) -> int:
    """The findings; exit 1 if one of them is a failure."""
    good = all(check.status != "failed" for check in checks)
    if session.json:
        session.result_json({"ok": good, "checks": [check._asdict() for check in checks]})
        return 0 if good else 1
    for check in checks:
        mark, style = _MARKS[check.status]
        session.result(f" {session.paint(mark, style, session.out)} {check.name:<11} {safe(check.detail)}")
        if check.fix:
            session.result(f"    {'fix':<11} {check.fix}")
    session.say("all well" if good else "something has to be repaired first", "green" if good else "red")
    return 0 if good else 1


def _machine() -> Iterator[Check]:
    import apsw

    python = platform.python_version()
    enough = sys.version_info[:2] >= PYTHON_MIN
    yield Check("python", "ok" if enough else "failed", python, None if enough else "install Python 3.11 or newer")
    found = apsw.sqlite_lib_version()
    enough = tuple(int(part) for part in found.split(".")) >= SQLITE_MIN
    least = ".".join(map(str, SQLITE_MIN))
    yield Check(
        "sqlite", "ok" if enough else "failed", found, None if enough else f"pip install --upgrade apsw  # {least}"
    )


def _settings(settings: Settings) -> Check:
    said = [key for key in settings.listing() if settings.source_of(key) != "default"]
    detail = ", ".join(f"{key} from {_near(settings.source_of(key))}" for key in said)
    return Check("settings", "ok", detail or "all defaults")


def _near(source: str) -> str:
    here = f"{Path.cwd()}{os.sep}"
    return source.removeprefix(here)


def _place(settings: Settings) -> Iterator[Check]:
    path = settings.store_path
    if path is None:
        return
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    writable = os.access(folder, os.W_OK | os.X_OK)
    there = f"{size(path.stat().st_size)}" if path.is_file() else "not there yet; the first `run` makes it"
    yield Check(
        "store",
        "ok" if writable else "failed",
        f"{shown(settings)}, {there}" if writable else f"{folder} may not be written",
        None if writable else f"chmod u+wx '{folder}', or --store FILE elsewhere",
    )
    survives = {"power": "a power cut", "process": "the death of the process, not a power cut"}
    yield Check("durability", "ok", f"{settings.durability}: what is recorded survives {survives[settings.durability]}")
    free = shutil.disk_usage(folder).free
    enough = free >= FREE_BYTES_MIN
    yield Check("disk", "ok" if enough else "warning", f"{size(free)} free", None if enough else "free some space")


async def _database(settings: Settings) -> Check:
    """Whether it answers, and holds a store of ours that is as durable as is asked for."""
    try:
        async with open_keeping(settings) as store:
            version = (await store.info()).schema_version
    except EverstepError as error:
        here = "see whether it runs there, and `store` is right"
        fix = here if error.code == "store_unavailable" else error.what_to_do
        return Check("store", "failed", f"{shown(settings)}: {error.message}", fix)
    return Check("store", "ok", f"{shown(settings)}, schema {version}; {settings.durability} durability")


async def _holder(settings: Settings) -> Check:
    if not settings.lock_path.exists():
        return Check("lock", "ok", "free")
    client = await find_engine(settings)
    said = read_lock(settings.lock_path)
    if client is not None:
        await client.close()
        return Check("lock", "ok", f"held by process {said.get('pid')} ('{said.get('command')}'), which answers")
    if not _locked(settings.lock_path):
        return Check("lock", "ok", "free")
    return Check(
        "lock",
        "failed",
        f"held by process {said.get('pid')} ('{said.get('command')}'), which does not answer",
        f"look at it: ps -fp {said.get('pid')}; if it hangs: kill {said.get('pid')} (nothing recorded is lost)",
    )


def _locked(path: Path) -> bool:
    """Whether somebody holds the lock; asked for a moment, never kept."""
    import fcntl

    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _loose(settings: Settings) -> Iterator[tuple[Path, int]]:
    """Files of the store that others can read, and the mode they should have."""
    path = settings.store_path
    if path is None:
        return
    wanted = [(path.parent, 0o700)] if path.parent.name == ".everstep" else []
    wanted += [(path, 0o600), (settings.lock_path, 0o600), (settings.socket_path, 0o600), (settings.log_path, 0o600)]
    for one, mode in wanted:
        if one.exists() and stat.S_IMODE(one.stat().st_mode) & 0o077:
            yield one, mode


def _modes(settings: Settings) -> Iterator[Check]:
    loose = [*_loose(settings)]
    for path, mode in loose:
        yield Check("file modes", "failed", f"{path} can be read by others", f"chmod {mode:o} '{path}'")
    if not loose:
        yield Check("file modes", "ok", "only you can read the store")


def _repair(settings: Settings) -> None:
    for path, mode in _loose(settings):
        path.chmod(mode)


async def _walls(settings: Settings) -> list[Check]:
    from everstep.doors.cli.doctor_walls import walls

    found = []
    for name, said, whole in await walls(settings):
        fix = None if whole else f"{name}: untrusted plans are refused; for others, this is what holds"
        found.append(Check(name, "ok" if whole else "warning", said, fix))
    return found


async def _tools(opening: Opening) -> Check:
    try:
        reply = await (await opening.judge()).request(Ask(method="GET", path="/v1/tools"))
    except EverstepError as error:
        return Check("tools", "failed", error.message, error.what_to_do)
    count = len(reply.body.get("items") or ())
    return Check("tools", "ok", f"{count} tools; list them: everstep tools")
