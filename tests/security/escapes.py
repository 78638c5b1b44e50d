"""The escape suite (S50): small programs that try to get out, each behind several sets of walls; none may succeed.

python -m tests.security.escapes            all of them, a few minutes
"""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from everstep.adapters.isolation.child import Bounds, Child, Program

UID = 61184
LAYERS: dict[str, tuple[str, ...]] = {"all": (), "no namespaces": ("namespaces",), "no group": ("cgroup",)}
"""Without them the others must hold as well."""
OUT = "ESCAPED"

_WAYS = {
    "plain": "{outside}/{name}",
    "upwards": "../outside/{name}",
    "by the root of the process": "/proc/self/root{outside}/{name}",
    "by the root of its parent": "/proc/{{os.getppid()}}/root{outside}/{name}",
    "by its own folder": "/proc/self/cwd/../outside/{name}",
    "by a link": "link/{name}",
    "by a link to a link": "link2/{name}",
    "doubled slashes": "/{outside}//./{name}",
}
_READS = {
    "open": "open(f'{path}').read()",
    "list": "os.listdir(os.path.dirname(f'{path}'))",
    "descriptor": "os.read(os.open(f'{path}', os.O_RDONLY), 9)",
    "hard link": "os.link(f'{path}', 'mine'); open('mine').read()",
    "rename in": "os.rename(f'{path}', 'mine'); open('mine').read()",
}
_WRITES = {
    "write": "open(f'{path}', 'w').write('x')",
    "append": "open(f'{path}', 'a').write('x')",
    "truncate": "os.truncate(f'{path}', 0)",
    "unlink": "os.unlink(f'{path}')",
    "replace": "open('mine', 'w').close(); os.replace('mine', f'{path}')",
}
_MAKES = {
    "make a folder": "os.mkdir('{outside}/new')",
    "make a FIFO": "os.mkfifo('{outside}/new')",
    "make a link": "os.symlink('/etc', '{outside}/new')",
    "make a device": "os.mknod('device', 0o60600, os.makedev(8, 0))",
    "open a disk": "os.open('/dev/vda', os.O_RDONLY)",
    "open the memory": "os.open('/dev/mem', os.O_RDONLY)",
    "push into a terminal": "import fcntl; fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x')",
    "another user": "os.setuid(0); os.getuid() or 1 / (os.getuid() != 0)",
    "another root": "os.chroot('.')",
    "a program's own group": "open('/sys/fs/cgroup/pids/cgroup.procs', 'w').write('0')",
    "the group of version 2": "open('/sys/fs/cgroup/cgroup.procs', 'w').write('0')",
    "more memory": "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))",
    "more files": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (9999, 9999))",
    "the engine's memory": "open('/proc/{engine}/mem', 'rb').read(1)",
    "the engine's environment": "open('/proc/{engine}/environ', 'rb').read(1)",
    "the engine's descriptors": "os.readlink('/proc/{engine}/fd/0')",
    "the engine's folder": "os.listdir('/proc/{engine}/cwd')",
    "end the engine": "os.kill({engine}, 0)",
    "end the keeper": "os.kill(os.getppid(), 9) if os.getppid() > 1 else 1 / 0",
    "secrets of the environment": "next(name for name in os.environ if 'SECRET' in name)",
    "descriptors of others": "[os.fstat(n) for n in range(3, 64) if os.path.exists('/proc/self/fd/%d' % n)][1]",
    "a core file": "import resource; resource.setrlimit(resource.RLIMIT_CORE, (1, 1))",
    "the engine's priority": "os.nice(-1)",
}
_FAMILIES = {
    "internet": 2,
    "internet 6": 10,
    "packet": 17,
    "vsock": 40,
    "key": 15,
    "alg": 38,
    "bluetooth": 31,
    "can": 29,
}
_CALLS = {
    "ptrace": (101, 16), "mount": (165, 0), "umount2": (166, 0), "bpf": (321, 0), "perf_event_open": (298, 0),
    "keyctl": (250, 0), "add_key": (248, 0), "userfaultfd": (323, 0), "io_uring_setup": (425, 1),
    "kexec_load": (246, 0), "init_module": (175, 0), "finit_module": (313, 0), "delete_module": (176, 0),
    "setns": (308, 0), "unshare": (272, 0x10000000), "open_by_handle_at": (304, 0), "process_vm_readv": (310, 1),
    "pivot_root": (155, 0), "swapon": (167, 0), "reboot": (169, 0), "fsopen": (430, 0), "move_mount": (429, 0),
    "clone a user": (56, 0x10000000),
}  # fmt: skip
_CALL = (
    "import ctypes; c = ctypes.CDLL(None, use_errno=True); r = c.syscall({number}, {argument}, 0, 0, 0, 0)\n"
    "1 / (r >= 0 or ctypes.get_errno() not in (1, 38))"
)


def programs() -> Iterator[tuple[str, str]]:
    """Name and code; `{outside}` and `{engine}` are filled in. Whatever raises has not got out."""
    for way, path in _WAYS.items():
        for what, code in (_READS | _WRITES).items():
            yield f"{what}, {way}", code.replace("{path}", path.replace("{name}", "canary"))
    yield from _MAKES.items()
    for name, family in _FAMILIES.items():
        for kind in (1, 2):
            yield f"a socket of {name}, kind {kind}", f"import socket; socket.socket({family}, {kind})"
    if os.uname().machine == "x86_64":
        for name, (number, argument) in _CALLS.items():
            yield f"the call {name}", _CALL.format(number=number, argument=argument)


@contextmanager
def ground() -> Iterator[tuple[Path, Path]]:
    """A folder to be in, and one that is none of its business."""
    folder = Path(tempfile.mkdtemp(prefix="everstep-escapes-"))
    folder.chmod(0o755)
    inside, outside = folder / "inside", folder / "outside"
    for place in (inside, outside):
        place.mkdir()
        place.chmod(0o777)
    (outside / "canary").write_text("secret")
    (outside / "canary").chmod(0o666)
    (inside / "link").symlink_to(outside)
    (inside / "link2").symlink_to("link")
    try:
        yield inside, outside
    finally:
        shutil.rmtree(folder)


async def escaped(code: str, without: tuple[str, ...]) -> bool:
    """Whether it got out: it says so, or something outside has changed."""
    with ground() as (inside, outside):
        filled = code.replace("{{", "{").replace("}}", "}").replace("{outside}", str(outside))
        script = f"import os\n{filled.replace('{engine}', str(os.getpid()))}\nprint('{OUT}')"
        program = Program(
            argv=(sys.executable, "-I", "-S", "-c", script),
            cwd=str(inside),
            bounds=Bounds(cpu_s=10, processes=16),
            uid=UID,
            reads=(sys.prefix, sys.base_prefix),
            writes=(str(inside),),
            without=without,
        )
        ended = await Child(program).run()
        changed = [one.name for one in outside.iterdir()] != ["canary"] or (outside / "canary").read_text() != "secret"
        return changed or not ended.gone or OUT.encode() in ended.stdout.data


async def main() -> int:
    """All of them behind all sets of walls."""
    every = [*programs()]
    found = [
        f"{name} ({set_of})"
        for set_of, without in LAYERS.items()
        for name, code in every
        if await escaped(code, without)
    ]
    for one in found:
        print(f"out: {one}")
    print(f"{len(every)} programs behind {len(LAYERS)} sets of walls: {len(found)} got out")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
