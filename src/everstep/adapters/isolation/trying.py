"""What this machine can put around a process, found by doing it: a child tries to write outside, connect, and stay."""

from pathlib import Path
from typing import Final

from everstep.adapters.isolation.child import Bounds, Child, Program
from everstep.domain.values import JsonObject

_TRIES: Final = "echo x > ../outside; (sleep 30 &) ; exit 0"


async def tried(uid: int | None) -> JsonObject | None:
    """The walls around a small program, and whether they held; None if no program could be started."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="everstep-walls-") as folder:
        inside = Path(folder) / "inside"
        for place in (Path(folder), inside):
            place.mkdir(exist_ok=True)
            place.chmod(0o777 if uid else 0o700)
        bounds = Bounds(cpu_s=5.0, processes=16)
        program = Program(
            argv=("/bin/sh", "-c", _TRIES), cwd=str(inside), bounds=bounds, uid=uid, writes=(str(inside),)
        )
        ended = await Child(program).run()
        if ended.containment is None:
            return None
        return {**ended.containment, "kept_inside": not (Path(folder) / "outside").exists(), "ended_whole": ended.gone}
