"""A server that the operator names by its command: where it runs, and what it may read and write."""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from everstep.adapters.isolation.bounds import Walls
from everstep.adapters.isolation.child import Bounds, Program
from everstep.domain.record import record
from everstep.ports.tool import Misconfigured

BOUNDS: Final = Bounds(cpu_s=10**8, address_space=False)
"""A server lives as long as the engine, and its interpreter may reserve what it likes."""
OUTSIDE: Final = frozenset({".everstep"})
"""Of the project, what no server may read."""


@record
class Command:
    """How to start it."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    network: bool
    project: Path
    home: Path
    """A folder that stays, so that what it has fetched is there the next time."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    """Folders that the operator opens to it."""


def program_of(command: Command, walls: Walls) -> Program:
    """What to run; raises Misconfigured."""
    import shutil

    found = shutil.which(command.argv[0])
    if found is None:
        raise Misconfigured(f"there is no program '{command.argv[0]}' for '{command.name}'", code="shell_missing")
    base, home = command.project.resolve(), _home(command.home, walls)
    project = (str(entry) for entry in base.iterdir() if entry.name not in OUTSIDE)
    opened = [tuple(str((base / folder).resolve()) for folder in said) for said in (command.reads, command.writes)]
    reads = {*project, *opened[0], *_around(Path(found))}
    return Program(
        argv=(found, *(_spelled(word, base) for word in command.argv[1:])),
        cwd=str(home),
        env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), **command.env},
        bounds=BOUNDS,
        network=command.network,
        uid=walls.uid,
        reads=tuple(sorted(reads)),
        writes=(str(home), *opened[1]),
        require=walls.require.get(command.name, ""),
    )


def _spelled(word: str, base: Path) -> str:
    """A file of the project is named as a whole: the server runs in a folder of its own."""
    return str(base / word) if not word.startswith(("-", "/")) and (base / word).is_file() else word


def _around(program: Path) -> tuple[str, ...]:
    """What a program outside the system's folders brings along: the trees that it, and what reads it, are part of."""
    with program.open("rb") as file:
        first = file.readline(4_096)
    reader = Path(os.fsdecode(first[2:].split()[0])) if first.startswith(b"#!") and first[2:].split() else program
    trees = {one.parent.parent for path in (program, reader) for one in (path, path.resolve())}
    return tuple(str(tree) for tree in trees if len(tree.parts) > 2)


def _home(home: Path, walls: Walls) -> Path:
    other = walls.uid if os.getuid() == 0 else None
    if other:  # another user, who does not come through our folders
        import tempfile

        home = Path(tempfile.gettempdir()) / f"everstep-mcp-{sha256(os.fsencode(home)).hexdigest()[:16]}"
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if home.is_symlink() or home.stat().st_uid not in {os.getuid(), other}:
        raise Misconfigured(f"{home} belongs to somebody else", code="os_denied")
    if other:
        os.chown(home, other, other)
    return home
