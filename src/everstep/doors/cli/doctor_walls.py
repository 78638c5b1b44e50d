"""What stands around programs on this machine, in words, for `everstep doctor`."""

from typing import Any, Final

from everstep.bootstrap import tried_walls
from everstep.settings import Settings

LIMITS: Final = {
    "group": "memory, processes and CPU share by cgroup {cgroup}, CPU time and disk by watching, files by the kernel",
    "none": "no cgroup: memory, CPU time, processes and disk by watching, files by the kernel, CPU share by nice only",
}


async def walls(settings: Settings) -> tuple[str, bool]:
    """One line, and whether all of them stand."""
    held: dict[str, Any] | None = await tried_walls(settings)
    if held is None:
        return "no program can be started behind walls here", False
    layers = [f"user {held['uid']}", *(f"{name} namespace" for name in held["namespaces"])]
    layers += [f"Landlock {held['landlock_abi']}"] if held["landlock_abi"] else []
    layers += ["seccomp"] if held["seccomp"] else []
    layers += ["outside untouched"] if held["kept_inside"] else ["the outside could be written"]
    layers += ["ends as a whole"] if held["ended_whole"] else ["something was left running"]
    lacking = f"; missing: {', '.join(held['missing'])}" if held["missing"] else ""
    limits = LIMITS["none" if held["cgroup"] == "none" else "group"].format(**held)
    return f"{held['level']}: {', '.join(layers)}{lacking}; limits: {limits}", not held["missing"]
