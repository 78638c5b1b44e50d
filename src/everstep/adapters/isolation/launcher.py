"""Builds the walls around one program, then becomes it. Runs in a child: of ours it knows the walls, and no more.

It is told what to do on its first descriptor, after the supervisor has noted its number, so nothing runs unsupervised.
What is really in force goes back on the second, before the program begins: found by doing it, never assumed; that it
could not begin; and what it wrote, when it has ended. A third descriptor, if there is one, is the program's.

    keeper (the supervisor's child) -> init of a pid namespace -> the program
Whoever kills the keeper, which counts what is written, ends init, and with it everything in its namespace.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from everstep.adapters.isolation.landlock import landlock
from everstep.adapters.isolation.seccomp import NEW_USER, seccomp

libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_DROP, PR_SET_SUBREAPER, PR_SET_DUMPABLE = 1, 38, 24, 36, 4
NEW = {"ipc": 0x08000000, "uts": 0x04000000, "net": 0x40000000, "pid": 0x20000000, "mount": 0x00020000}
CANNOT = 125
PORTS_ABI = 4  # Landlock knows ports since then
SERVE = "serve"  # after the descriptors: the program is a call of a Python function
FASTEST = 8_000_000_000  # no program writes more bytes in a second
LOOK_S, PATIENCE_S = (0.0003, 0.05), 1.0


def started(work: Callable[[], None]) -> None:
    """Do it; if that cannot be done, say why and end."""
    try:
        work()
    except Exception as error:  # noqa: BLE001 -- nobody above it
        sys.stderr.write(f"everstep: the walls could not be built: {error!r}\n")
        os._exit(CANNOT)


def main() -> None:
    """Read the order, build, become."""
    then: Callable[[dict[str, Any]], None] | None = None
    if sys.argv[-1] == SERVE:  # imported before anybody says which call it is for; that may be long after
        from everstep.adapters.isolation.serve import serve_in as then
    orders, report, *kept = (int(word) for word in sys.argv[1:] if word != SERVE)
    die_with_parent()
    with os.fdopen(orders, "rb") as pipe:
        order = json.loads(pipe.read())
    os.setsid()
    os.umask(0o077)
    made: dict[str, Any] = {"namespaces": namespaces(order), "uid": os.getuid(), "landlock_abi": 0, "seccomp": False}
    init = os.fork()
    if init:
        keep(init, order["disk"], report)
    die_with_parent()
    libc.prctl(PR_SET_SUBREAPER, 1, 0, 0, 0)
    program = os.fork()
    if program:
        reap(program)
    build(order, made)
    if then is not None:
        begin(order, made, report, kept)
        return then(order)
    begin(order, made, report, [*kept, report])
    fcntl.fcntl(report, fcntl.F_SETFD, fcntl.FD_CLOEXEC)  # whoever becomes the program has it no more
    return become(order, report)


def build(order: dict[str, Any], made: dict[str, Any]) -> None:
    """The last walls, those that bind this process for good."""
    os.chdir(order["cwd"])
    made["cgroup"] = enter(order["group"])
    limits(order, grouped=made["cgroup"] != "none")
    made["uid"] = drop_to(order)
    die_with_parent()
    no_more_privileges()
    made["landlock_abi"] = landlock(order)
    sandboxes = order.get("sandboxes", False)
    made["seccomp"] = "seccomp" not in order["without"] and seccomp(order["network"], sandboxes=sandboxes)
    kept_to = {
        "none": "net" in made["namespaces"] or made["seccomp"],
        "proxy": "net" in made["namespaces"] or (made["landlock_abi"] >= PORTS_ABI and made["seccomp"]),
        "host": True,
    }
    made["network"] = order["network"] if kept_to[order["network"]] else "host"
    made["missing"] = missing(made, order)


def begin(order: dict[str, Any], made: dict[str, Any], report: int, kept: list[int]) -> None:
    """Say what stands, and let go of all that is not the program's; if too little stands, end."""
    os.write(report, json.dumps(made).encode() + b"\n")
    if made["missing"] and order["require"] == "restricted":
        os._exit(CANNOT)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    for descriptor in range(3, 256):
        if descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def become(order: dict[str, Any], report: int | None = None) -> None:
    """The program, or say that it could not begin: programs end with such a code for reasons of their own too."""
    for number in range(1, signal.NSIG):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 -- that is its job
    except OSError as error:
        os.write(2, f"everstep: {order['argv'][0]}: {error.strerror}\n".encode())
        if report is not None:
            os.write(report, json.dumps({"begun": False}).encode() + b"\n")
        os._exit(127 if error.errno == errno.ENOENT else 126)


def missing(made: dict[str, Any], order: dict[str, Any]) -> list[str]:
    """Walls that a program of strangers must not be without."""
    lacking = {
        "uid": made["uid"] == 0,
        "landlock": not made["landlock_abi"],
        "seccomp": not made["seccomp"],
        "network": made["network"] != order["network"],
    }
    return [name for name, lacks in lacking.items() if lacks]


def die_with_parent() -> None:
    """No child outlives whoever watches over it."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def keep(init: int, most: int, report: int) -> NoReturn:
    """End as the inner one did; and end all below it as soon as they have written more than they may."""
    close_all(but=report)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    ended, used, since = os.pidfd_open(init), 0, 0.0
    while True:
        began = time.perf_counter()
        family, now = below(init), 0
        for pid in family:
            now += written(pid)
        used = max(used, now)
        if used > most:
            since = since or began
            for pid in family[1:] if began - since < PATIENCE_S else family:  # init tells what the dead have written
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        cost = time.perf_counter() - began
        left = max(most - used, most / 20) / FASTEST
        if select.select([ended], [], [], min(LOOK_S[1], max(LOOK_S[0], left, min(3 * cost, 0.005))))[0]:
            break
    os.waitid(os.P_PID, init, os.WEXITED | os.WNOWAIT)
    used = max(used, written(init))
    _, status, spent = os.wait4(init, 0)
    os.write(report, json.dumps({"disk_bytes": used, "memory_bytes": spent.ru_maxrss * 1024}).encode() + b"\n")
    end_as(status)


def below(pid: int) -> list[int]:
    """It, and all it has started."""
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):  # noqa: PTH208 -- many times a second
                found += map(int, read(f"/proc/{one}/task/{thread}/children").split())
    return found


def written(pid: int) -> int:
    """What it sent to a disk, and all whose end it has seen; also when it is dead itself."""
    with contextlib.suppress(OSError):
        return int(read(f"/proc/{pid}/io").partition("\nwrite_bytes: ")[2].split()[0])
    return 0


def read(path: str) -> str:
    """A small file."""
    with open(path) as file:  # noqa: PTH123 -- starts faster without
        return file.read()


def close_all(*, but: int = 0) -> None:
    """Descriptors that this process has no use for."""
    os.closerange(3, but)
    os.closerange(max(but + 1, 3), 65_536)


def reap(program: int) -> NoReturn:
    """Init: wait for the program, and for all who lost their parent; then end the rest."""
    close_all()
    status = 0
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        if pid == program:
            break
    end_rest()
    end_as(status)


def end_rest() -> None:
    """All who lost their parent have come to us, so they can be found, and what they used be counted."""
    while True:
        for pid in (-1,) if os.getpid() == 1 else below(os.getpid())[1:]:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def end_as(status: int) -> NoReturn:
    """With the same exit code, or 128 and the signal: an init cannot die of one."""
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


# --- walls ---


def namespaces(order: dict[str, Any]) -> list[str]:
    """Own processes, network, messages and names; where that is forbidden, less."""
    wanted = ["ipc", "uts", "pid", *order.get("also", ()), *([] if order["network"] == "host" else ["net"])]
    if "namespaces" in order["without"]:
        return []
    flags = sum(NEW[name] for name in wanted)
    if os.getuid() == 0 and libc.unshare(flags) == 0:
        return wanted
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(flags | NEW_USER) != 0:
        return []
    with contextlib.suppress(OSError):
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
                file.write(text)
    return ["user", *wanted]


def enter(group: dict[str, Any] | None) -> str:
    """Join the group that the supervisor has made: its version, or `none`."""
    if group is None:
        return "none"
    try:
        for door in group["doors"]:
            with open(door, "w") as file:  # noqa: PTH123
                file.write("0")
    except OSError:
        return "none"
    return str(group["version"])


def limits(order: dict[str, Any], *, grouped: bool) -> None:
    """What the kernel counts for each process; where a group counts for all together, less of it."""
    counted = order["rlimits"] if grouped else {**order["rlimits"], **order["without_group"]}
    for name, most in counted.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        os.nice(order.get("nice", 0))


def drop_to(order: dict[str, Any]) -> int:
    """Another user, if we are root and that user can do the work; never more than we were."""
    uid: int | None = order.get("uid")
    if os.getuid() != 0 or uid is None or "uid" in order["without"] or not can_work(order, uid):
        return os.getuid()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    return uid


def can_work(order: dict[str, Any], uid: int) -> bool:
    """Whether this user reaches the program and the folder: by trying."""
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        good = all(os.access(path, os.R_OK) for path in order["reads"]) and os.access(".", os.R_OK | os.W_OK | os.X_OK)
        os._exit(0 if good and os.access(order["argv"][0], os.X_OK) else 1)
    return os.waitpid(pid, 0)[1] == 0


def no_more_privileges() -> None:
    """No capability is left, and no program gives any."""
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header = struct.pack("II", 0x20080522, 0)
    libc.capset(header, struct.pack("6I", 0, 0, 0, 0, 0, 0))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
