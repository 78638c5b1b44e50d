"""Builds the walls around the browser, then becomes it. Runs in a child: of ours it knows the launcher, and no more.

Somebody else's library starts it, so its order waits at a socket in the folder that is its first word; the others are
the browser's. By that socket it hands back the ways out of its network, and says what stands.

A socket belongs to the network it was made in, whoever uses it later: those that listen inside are served from outside.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
from typing import Any, NoReturn

from everstep.adapters.isolation.launcher import (
    become,
    begin,
    build,
    can_work,
    close_all,
    die_with_parent,
    end_as,
    namespaces,
    reap,
    started,
)
from everstep.adapters.isolation.seccomp import NEW_USER

__all__ = ["main", "started"]

libc = ctypes.CDLL(None, use_errno=True)
DOOR = "door"
PIPE = [3, 4]  # by which the browser is spoken to
PR_SET_SUBREAPER, PR_SET_DUMPABLE = 36, 4
SET_FLAGS, UP = 0x8914, 0x1
PRIVATE_ALL, PROC_FLAGS = 0x40000 | 0x4000, 0x2 | 0x4 | 0x8  # no set-uid programs, devices, programs


def main() -> None:
    """Ask for the order, build, become."""
    die_with_parent()
    folder, *words = sys.argv[1:]
    line = socket.socket(socket.AF_UNIX)
    line.connect(f"/proc/self/fd/{os.open(folder, os.O_PATH)}/{DOOR}")  # a path may be longer than sockets know
    order = json.loads(line.makefile("rb").readline())
    with contextlib.suppress(PermissionError):  # whoever started us may have done so
        os.setsid()
    os.umask(0o077)
    made: dict[str, Any] = {"namespaces": namespaces(order)}
    order["ports"] = hand_over(line, listening(order["ways"], lone="net" in made["namespaces"]))
    init = os.fork()
    if init:
        keep(init, folder)
    die_with_parent()
    libc.prctl(PR_SET_SUBREAPER, 1, 0, 0, 0)
    order["own_proc"] = "mount" in made["namespaces"] and own_proc()
    program = os.fork()
    if program:
        reap(program)
    give_folder(order)
    build(order, made)
    made["browser_sandbox"] = made["uid"] != 0 and can_sandbox()
    order["argv"] = [*order["argv"], *words_for(order, words, sandbox=made["browser_sandbox"])]
    begin(order, made, line.fileno(), PIPE)
    become(order)


def keep(init: int, folder: str) -> NoReturn:
    """End as the inner one did, and leave nothing: an engine that was killed cannot see to it."""
    import shutil

    close_all()
    status = os.waitpid(init, 0)[1]
    shutil.rmtree(folder, ignore_errors=True)
    end_as(status)


def listening(many: int, *, lone: bool) -> list[socket.socket]:
    """Sockets on the loopback; in a network of our own that has to be switched on first."""
    if lone:
        with socket.socket() as any_socket:
            fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh22x", b"lo", UP))
    ways = [socket.socket() for _ in range(many)]
    for way in ways:
        way.bind(("127.0.0.1", 0))
        way.listen()
    return ways


def hand_over(line: socket.socket, ways: list[socket.socket]) -> list[int]:
    """They are served by others; their ports."""
    socket.send_fds(line, [b"\n"], [way.fileno() for way in ways])
    ports = [way.getsockname()[1] for way in ways]
    for way in ways:
        way.close()
    return ports


def own_proc() -> bool:
    """Only our own processes are seen; not everywhere may one be mounted."""
    if libc.mount(None, b"/", None, PRIVATE_ALL, None) != 0:
        return False
    return bool(libc.mount(b"proc", b"/proc", b"proc", PROC_FLAGS, None) == 0)


def give_folder(order: dict[str, Any]) -> None:
    """To the user that the browser will be, if that one can do the work; else it stays ours."""
    if os.getuid() != 0 or order["uid"] is None or "uid" in order["without"]:
        return
    os.chdir(order["cwd"])
    with contextlib.suppress(OSError):  # a root that is none cannot give anything away
        os.chown(".", order["uid"], order["uid"])
        if not can_work(order, order["uid"]):
            os.chown(".", 0, 0)


def can_sandbox() -> bool:
    """Whether the browser can build walls of its own inside ours, by doing what it does first."""
    uid, gid = os.getuid(), os.getgid()
    pid = os.fork()
    if pid == 0:
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # whoever changed its user owns its own files in /proc no more
        try:
            if libc.unshare(NEW_USER) != 0:
                os._exit(1)
            for name, text in (("setgroups", "deny"), ("gid_map", f"{gid} {gid} 1"), ("uid_map", f"{uid} {uid} 1")):
                os.write(os.open(f"/proc/self/{name}", os.O_WRONLY), text.encode())
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0


def words_for(order: dict[str, Any], words: list[str], *, sandbox: bool) -> list[str]:
    """Its arguments, but for the folder of its profile, which is in ours, and fresh."""
    kept = [word for word in words if not word.startswith("--user-data-dir=")]
    return [f"--user-data-dir={order['cwd']}/profile", *([] if sandbox else ["--no-sandbox"]), *kept]
