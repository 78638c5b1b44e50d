"""Builds the walls around one program, then becomes it. Runs by itself in a child: the standard library only.

It is told what to do on its first descriptor, after the supervisor has noted its number, so nothing runs unsupervised.
What is really in force goes back on the second, before the program begins: found by doing it, never assumed; and what
it wrote, when it has ended. A third descriptor, if there is one, is the program's.

    keeper (the supervisor's child) -> init of a pid namespace -> the program
Whoever kills the keeper, which counts what is written, ends init, and with it everything in its namespace.
"""

import contextlib
import ctypes
import errno
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

libc = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_SUBREAPER, PR_SET_DUMPABLE = (
    1,
    38,
    22,
    24,
    36,
    4,
)
NEW = {"ipc": 0x08000000, "uts": 0x04000000, "net": 0x40000000, "pid": 0x20000000}
NEW_USER = 0x10000000
CANNOT = 125
SERVE = "serve"  # after the descriptors: the program is a call of a Python function
FASTEST = 8_000_000_000  # no program writes more bytes in a second
LOOK_S, PATIENCE_S = (0.0003, 0.05), 1.0


def main() -> None:
    """Read the order, build, become."""
    then: Callable[[dict[str, Any]], None] = become
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
    wall_in(order, made, report, kept)
    then(order)


def wall_in(order: dict[str, Any], made: dict[str, Any], report: int, kept: list[int]) -> None:
    """The last walls, those that bind this process for good."""
    os.chdir(order["cwd"])
    made["cgroup"] = enter(order["group"])
    limits(order, grouped=made["cgroup"] != "none")
    made["uid"] = drop_to(order)
    die_with_parent()
    no_more_privileges()
    made["landlock_abi"] = landlock(order)
    made["seccomp"] = "seccomp" not in order["without"] and seccomp(network=order["network"])
    if not order["network"]:
        made["network"] = "none" if "net" in made["namespaces"] or made["seccomp"] else "host"
    else:
        made["network"] = "host"
    made["missing"] = missing(made, order)
    os.write(report, json.dumps(made).encode() + b"\n")
    if made["missing"] and order["require"] == "restricted":
        os._exit(CANNOT)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    for descriptor in range(3, 256):
        if descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def become(order: dict[str, Any]) -> None:
    """The program."""
    for number in range(1, signal.NSIG):
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 -- that is its job
    except OSError as error:
        os.write(2, f"everstep: {order['argv'][0]}: {error.strerror}\n".encode())
        os._exit(127 if error.errno == errno.ENOENT else 126)


def missing(made: dict[str, Any], order: dict[str, Any]) -> list[str]:
    """Walls that a program of strangers must not be without."""
    lacking = {
        "uid": made["uid"] == 0,
        "landlock": not made["landlock_abi"],
        "seccomp": not made["seccomp"],
        "network": not order["network"] and made["network"] != "none",
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
    os.write(report, json.dumps({"disk_bytes": used}).encode() + b"\n")
    end_as(os.waitpid(init, 0)[1])


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
    wanted = ["ipc", "uts", "pid", *([] if order["network"] else ["net"])]
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


# --- Landlock ---

READ = 0x1 | 0x4 | 0x8  # execute, read file, read dir
FILE_ONLY = 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000
ALL = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full", "/dev/tty")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc", "/opt", "/proc", "/sys/devices/system/cpu")


def landlock(order: dict[str, Any]) -> int:
    """The system may be read, the folder written, nothing else reached; 0 where the kernel cannot."""
    if "landlock" in order["without"]:
        return 0
    abi: int = libc.syscall(444, None, ctypes.c_size_t(0), 1)
    if abi < 1:
        return 0
    fs = ALL[min(abi, 5)]
    net = 0 if abi < 4 or order["network"] else 0x3
    scope = 0x3 if abi >= 6 else 0
    rule = struct.pack("QQQ", fs, net, scope)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = libc.syscall(444, rule, ctypes.c_size_t(len(rule)), 0)
    if ruleset < 0:
        return 0
    for path in (*SYSTEM, *order["reads"]):
        allow(ruleset, path, READ)
    for path in DEVICES:
        allow(ruleset, path, READ | 0x2)
    for path in order["writes"]:
        allow(ruleset, path, fs)
    if libc.syscall(446, ruleset, 0) != 0:
        return 0
    os.close(ruleset)
    return abi


def allow(ruleset: int, path: str, access: int) -> None:
    """One more place; what is not there needs no rule."""
    try:
        at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):  # noqa: PTH112
        access &= FILE_ONLY
    libc.syscall(445, ruleset, 1, struct.pack("=Qi", access, at), 0)
    os.close(at)


# --- seccomp ---

NUMBERS = {
    "x86_64": {
        "arch": 0xC000003E, "socket": 41, "clone": 56, "clone3": 435, "ptrace": 101, "mount": 165, "umount2": 166,
        "bpf": 321, "perf_event_open": 298, "keyctl": 250, "add_key": 248, "request_key": 249, "userfaultfd": 323,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 246,
        "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176, "setns": 308,
        "unshare": 272, "open_by_handle_at": 304, "process_vm_readv": 310, "process_vm_writev": 311, "pivot_root": 155,
        "swapon": 167, "reboot": 169, "fsopen": 430, "move_mount": 429, "open_tree": 428,
    },
    "aarch64": {
        "arch": 0xC00000B7, "socket": 198, "clone": 220, "clone3": 435, "ptrace": 117, "mount": 40, "umount2": 39,
        "bpf": 280, "perf_event_open": 241, "keyctl": 219, "add_key": 217, "request_key": 218, "userfaultfd": 282,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 104,
        "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106, "setns": 268,
        "unshare": 97, "open_by_handle_at": 265, "process_vm_readv": 270, "process_vm_writev": 271, "pivot_root": 41,
        "swapon": 224, "reboot": 142, "fsopen": 430, "move_mount": 429, "open_tree": 428,
    },
}  # fmt: skip
ALLOW, DENY, NO_CALL, KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS, 0x80000000
INTERNET = (2, 10)
PLAIN = (1, 16)  # local sockets, and netlink, which resolvers ask


def seccomp(*, network: bool) -> bool:
    """Calls that no ordinary program makes are refused; without network, internet sockets too."""
    numbers = dict(NUMBERS.get(os.uname().machine, {}))
    if not numbers:
        return False
    arch, socket, clone, clone3 = (numbers.pop(name) for name in ("arch", "socket", "clone", "clone3"))
    program = [load(4), jump(arch, 1, 0), give(KILL), load(0)]
    if arch == NUMBERS["x86_64"]["arch"]:
        program += [(0x35, 0, 1, 0x40000000), give(DENY)]  # the other ABI of the same processor
    for number in numbers.values():
        program += [jump(number, 0, 1), give(DENY)]
    program += [jump(clone3, 0, 1), give(NO_CALL)]
    program += [jump(clone, 0, 4), load(16), (0x45, 0, 1, NEW_USER), give(DENY), give(ALLOW)]
    families = [*PLAIN, *(INTERNET if network else ())]
    tests = [step for family in families for step in (jump(family, 0, 1), give(ALLOW))]
    program += [jump(socket, 0, len(tests) + 2), load(16), *tests, give(DENY), give(ALLOW)]
    code = b"".join(struct.pack("HBBI", *one) for one in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filters = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    return bool(libc.prctl(PR_SET_SECCOMP, 2, filters, 0, 0) == 0)


def load(offset: int) -> tuple[int, int, int, int]:
    """A word of the call: its number, its processor, an argument."""
    return (0x20, 0, 0, offset)


def jump(value: int, then: int, otherwise: int) -> tuple[int, int, int, int]:
    """Skip so many steps if equal, so many if not."""
    return (0x15, then, otherwise, value)


def give(verdict: int) -> tuple[int, int, int, int]:
    """End here."""
    return (0x06, 0, 0, verdict)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # noqa: BLE001 -- nobody above it: say why and end
        sys.stderr.write(f"everstep: the walls could not be built: {error!r}\n")
        os._exit(CANNOT)
