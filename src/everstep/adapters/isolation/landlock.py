"""Landlock: which files a process reaches from now on, and which ports. Runs in a child: the standard library only."""

import ctypes
import os
import struct
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)

READ = 0x1 | 0x4 | 0x8  # execute, read file, read dir
FILE_ONLY = 0x1 | 0x2 | 0x4 | 0x4000 | 0x8000
ALL = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/full", "/dev/tty")
WRITE_FILE, BENEATH, PORT, CONNECT = 0x2, 1, 2, 0x2
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc", "/opt", "/proc", "/sys/devices/system/cpu")


def landlock(order: dict[str, Any]) -> int:
    """The system may be read, the folder written, the ports reached, nothing else; 0 where the kernel cannot."""
    if "landlock" in order["without"]:
        return 0
    abi: int = libc.syscall(444, None, ctypes.c_size_t(0), 1)
    if abi < 1:
        return 0
    fs = ALL[min(abi, 5)]
    net = 0 if abi < 4 or order["network"] == "host" else 0x3
    scope = 0x3 if abi >= 6 else 0
    rule = struct.pack("QQQ", fs, net, scope)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = libc.syscall(444, rule, ctypes.c_size_t(len(rule)), 0)
    if ruleset < 0:
        return 0
    for path in (*SYSTEM, *order["reads"]):
        allow(ruleset, path, READ)
    for path in DEVICES:
        allow(ruleset, path, READ | WRITE_FILE)
    for path in order["writes"]:
        allow(ruleset, path, fs)
    if order.get("own_proc"):  # no process of others is in it
        allow(ruleset, "/proc", READ | WRITE_FILE)
    for port in order.get("ports", ()) if net else ():
        libc.syscall(445, ruleset, PORT, struct.pack("QQ", CONNECT, port), 0)
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
    libc.syscall(445, ruleset, BENEATH, struct.pack("=Qi", access, at), 0)
    os.close(at)
