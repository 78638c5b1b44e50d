"""Seccomp: which calls of the kernel a process makes no more. Runs in a child: the standard library only."""

import ctypes
import errno
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)

NUMBERS = {
    "x86_64": {
        "arch": 0xC000003E, "socket": 41, "sendto": 44, "sendmsg": 46, "sendmmsg": 307, "clone": 56, "clone3": 435,
        "ptrace": 101, "mount": 165, "umount2": 166,
        "bpf": 321, "perf_event_open": 298, "keyctl": 250, "add_key": 248, "request_key": 249, "userfaultfd": 323,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 246,
        "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176, "setns": 308,
        "unshare": 272, "open_by_handle_at": 304, "process_vm_readv": 310, "process_vm_writev": 311, "pivot_root": 155,
        "swapon": 167, "reboot": 169, "fsopen": 430, "move_mount": 429, "open_tree": 428,
    },
    "aarch64": {
        "arch": 0xC00000B7, "socket": 198, "sendto": 206, "sendmsg": 211, "sendmmsg": 269, "clone": 220, "clone3": 435,
        "ptrace": 117, "mount": 40, "umount2": 39,
        "bpf": 280, "perf_event_open": 241, "keyctl": 219, "add_key": 217, "request_key": 218, "userfaultfd": 282,
        "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 104,
        "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106, "setns": 268,
        "unshare": 97, "open_by_handle_at": 265, "process_vm_readv": 270, "process_vm_writev": 271, "pivot_root": 41,
        "swapon": 224, "reboot": 142, "fsopen": 430, "move_mount": 429, "open_tree": 428,
    },
}  # fmt: skip
ALLOW, DENY, NO_CALL, KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS, 0x80000000
PR_SET_SECCOMP, NEW_USER = 22, 0x10000000
NUMBER, ARCH, ARGUMENT = 0, 4, (16, 24, 32, 40)  # where they are in what the kernel shows of a call
LOCAL, NETLINK, INTERNET = 1, 16, (2, 10)
FAMILIES = {"none": (LOCAL, NETLINK), "proxy": (LOCAL,), "host": (LOCAL, NETLINK, *INTERNET)}
"""Resolvers ask netlink; a browser that cannot ask it takes itself to be online, whatever its network looks like."""
STREAM, KIND_BITS, PLAIN_TCP = 1, 0xF, (0, 6)
CONNECTS = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}  # which argument holds the flags
FAST_OPEN = 0x20000000
Step = tuple[int, int, int, int]


def seccomp(network: str, *, sandboxes: bool = False) -> bool:
    """Calls that no ordinary program makes are refused, and sockets beyond its network.

    Whoever `sandboxes` its own children needs namespaces for that; they give it nothing here.
    """
    numbers = dict(NUMBERS.get(os.uname().machine, {}))
    if not numbers:
        return False
    arch, socket, clone, clone3 = (numbers.pop(name) for name in ("arch", "socket", "clone", "clone3"))
    sends = {numbers.pop(name): flags for name, flags in CONNECTS.items()}
    if sandboxes:
        del numbers["unshare"]
    program = [load(ARCH), jump(arch, 1, 0), give(KILL), load(NUMBER)]
    if arch == NUMBERS["x86_64"]["arch"]:
        program += [(0x35, 0, 1, 0x40000000), give(DENY)]  # the other ABI of the same processor
    for number in numbers.values():
        program += [jump(number, 0, 1), give(DENY)]
    program += [jump(clone3, 0, 1), give(NO_CALL)]
    if not sandboxes:
        program += [jump(clone, 0, 4), load(ARGUMENT[0]), (0x45, 0, 1, NEW_USER), give(DENY), give(ALLOW)]
    if network == "proxy":
        for number, flags in sends.items():  # Landlock looks at `connect` alone; these connect too
            program += [jump(number, 0, 4), load(ARGUMENT[flags]), (0x45, 0, 1, FAST_OPEN), give(DENY), give(ALLOW)]
    tests = sockets(network)
    program += [jump(socket, 0, len(tests)), *tests, give(ALLOW)]
    code = b"".join(struct.pack("HBBI", *one) for one in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filters = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    return bool(libc.prctl(PR_SET_SECCOMP, 2, filters, 0, 0) == 0)


def sockets(network: str) -> list[Step]:
    """What becomes of a call for a socket: by family; through a proxy, TCP and nothing that only resembles it."""
    steps = [load(ARGUMENT[0])]
    for family in FAMILIES[network]:
        steps += [jump(family, 0, 1), give(ALLOW)]
    if network == "proxy":
        steps += [jump(INTERNET[0], 1, 0), jump(INTERNET[1], 0, 7)]
        steps += [load(ARGUMENT[1]), (0x54, 0, 0, KIND_BITS), jump(STREAM, 0, 4)]
        steps += [load(ARGUMENT[2]), jump(PLAIN_TCP[0], 1, 0), jump(PLAIN_TCP[1], 0, 1), give(ALLOW)]
    return [*steps, give(DENY)]


def load(offset: int) -> Step:
    """A word of the call: its number, its processor, an argument."""
    return (0x20, 0, 0, offset)


def jump(value: int, then: int, otherwise: int) -> Step:
    """Skip so many steps if equal, so many if not."""
    return (0x15, then, otherwise, value)


def give(verdict: int) -> Step:
    """End here."""
    return (0x06, 0, 0, verdict)
