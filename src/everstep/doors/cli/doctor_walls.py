"""What stands around programs on this machine, in words, for `everstep doctor`."""

from collections.abc import Iterator
from typing import Any, Final

from everstep.bootstrap import tried_walls
from everstep.settings import Settings

LIMITS: Final = {
    "memory": ("cgroup {cgroup}", "address space and watching"),
    "CPU share": ("cgroup {cgroup}", "nice only"),
    "CPU time": ("cgroup {cgroup}, counted", "rlimit and watching"),
    "processes": ("cgroup {cgroup}", "rlimit and watching"),
    "wall time": ("supervisor", "supervisor"),
    "output": ("supervisor", "supervisor"),
    "files": ("rlimit", "rlimit"),
    "disk": ("reservation, rlimit and watching", "reservation, rlimit and watching"),
}
"""What keeps a program to each limit: with a control group, and without one."""

WAYS: Final = {"proxy": "no way out but our proxy", "host": "sent to our proxy, which nothing enforces"}
"""Of the browser."""


async def walls(settings: Settings) -> Iterator[tuple[str, str, bool]]:
    """Around what, one line, and whether all of them stand."""
    held: dict[str, Any] = await tried_walls(settings)
    found = [("programs", *_programs(held))]
    if held["browser"] is not None:
        found.append(("browser", *_browser(held["browser"])))
    return iter(found)


def _browser(held: dict[str, Any]) -> tuple[str, bool]:
    if "trouble" in held:
        return f"browser.enabled, but {held['trouble']}; {held['what_to_do'] or 'see browser.executable'}", False
    sandbox = "Chromium's own sandbox" if held["browser_sandbox"] else "no sandbox of Chromium's own"
    said = f"{held['level']}: {WAYS[held['network']]}, {', '.join(_layers(held))}, {sandbox}{_lacking(held)}"
    return f"{said}; {held['program']}", not held["missing"]


def _programs(held: dict[str, Any]) -> tuple[str, bool]:
    if "level" not in held:
        return "no program can be started behind walls here", False
    layers = _layers(held)
    layers += ["outside untouched"] if held["kept_inside"] else ["the outside could be written"]
    layers += ["ends as a whole"] if held["ended_whole"] else ["something was left running"]
    alone = held["cgroup"] == "none"
    limits = ", ".join(f"{name} by {how[alone].format(**held)}" for name, how in LIMITS.items())
    return f"{held['level']}: {', '.join(layers)}{_lacking(held)}; limits: {limits}", not held["missing"]


def _layers(held: dict[str, Any]) -> list[str]:
    layers = [f"user {held['uid']}", *(f"{name} namespace" for name in held["namespaces"])]
    layers += [f"Landlock {held['landlock_abi']}"] if held["landlock_abi"] else []
    return [*layers, "seccomp"] if held["seccomp"] else layers


def _lacking(held: dict[str, Any]) -> str:
    return f"; missing: {', '.join(held['missing'])}" if held["missing"] else ""
