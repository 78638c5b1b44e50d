"""Programs are kept to their limits by control groups of version 2, in a machine made for it.

    python -m tests.fault.kernel_v2

Most systems have v2, and a machine that mounts v1 cannot show it. So a small one is started: Debian's kernel under QEMU
without any support by the processor, this machine's files to read and none to write. There the engine's process is
alone in a group that was given to it, as under systemd with `Delegate=yes`. Without QEMU it is not run, and says why;
that fails unless `EVERSTEP_WAIVE` names `qemu`.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bench.limits import SHARE_MAX, worst_share
from bench.peers.environments import cache
from everstep.adapters.isolation.child import Bounds, Child, Program
from everstep.adapters.isolation.group import best_roots

ROOT: Final = Path(__file__).parents[2]
MARK: Final = "FOUND "
PATIENCE_S: Final = 600
MEMORY: Final = 64 << 20
PROCESSES: Final = 16
SAMPLED_S: Final = 30
PROGRAMS: Final[Mapping[str, tuple[tuple[str, ...], int]]] = {
    "taker": (("/usr/bin/perl", "-e", "$x = 'a' x (20 << 20); print length $x"), 4 * MEMORY),
    "bomb": (("/usr/bin/perl", "-e", "$x = 'a' x (500 << 20); print length $x"), MEMORY),
    "forks": (("/bin/sh", "-c", "f() { f | f & }; f; sleep 3"), 4 * MEMORY),
}
MODULES: Final = ("virtio_pci", "9pnet_virtio", "9p")
"""What the kernel needs to read our files; each names what it needs itself."""
DEPENDS: Final = re.compile(rb"\0depends=([^\0]*)\0")
INIT: Final = """#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc
for m in /m/*.ko; do $b insmod $m; done
$b mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro host /new
for fs in proc:proc sysfs:sys devtmpfs:dev tmpfs:tmp tmpfs:run cgroup2:sys/fs/cgroup; do
  $b mount -t ${fs%%:*} none /new/${fs#*:}
done
$b chmod 1777 /new/tmp
groups=/new/sys/fs/cgroup
echo "+memory +cpu +pids" > $groups/cgroup.subtree_control
$b mkdir $groups/service
$b sh -c "echo \\$\\$ > $groups/service/cgroup.procs; exec $b chroot /new COMMAND"
$b poweroff -f
"""


async def inside() -> None:
    """In that machine: what becomes of each program, and what is left."""
    roots = best_roots()
    found: dict[str, Any] = {"version": None if roots is None else roots.version}
    for name, (words, memory) in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as folder:
            bounds = Bounds(memory_bytes=memory, processes=PROCESSES)
            ended = await Child(Program(argv=words, cwd=folder, bounds=bounds, writes=(folder,))).run()
        found[name] = {
            "exit_code": ended.exit_code,
            "over": ended.over and ended.over[0],
            "memory_peak_bytes": ended.memory_peak_bytes,
            "cpu_s": ended.cpu_s,
            "gone": ended.gone,
            "cgroup": (ended.containment or {}).get("cgroup"),
        }
    with tempfile.TemporaryDirectory() as folder:
        found["share"] = await worst_share(Path(folder), (), SAMPLED_S)
    if roots is not None:
        found["left"] = sorted(one.name for one in roots.folders["memory"].iterdir() if one.is_dir())
    print(f"{MARK}{json.dumps(found)}", flush=True)


def judged(found: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with that."""
    for name in PROGRAMS:
        if (found["version"], found[name]["cgroup"], found[name]["gone"]) != ("v2", "v2", True):
            yield f"{name} was not held by v2, or something of it was left"
    taker, bomb = found["taker"], found["bomb"]
    if taker["exit_code"] != 0 or not 20 << 20 <= taker["memory_peak_bytes"] <= 66 << 20:
        yield "what a program takes is not what is told of it"
    if bomb["over"] != "memory" or bomb["memory_peak_bytes"] > MEMORY:
        yield "memory is not limited"
    if found["forks"]["over"] != "processes":
        yield "processes are not limited"
    if not 0 < found["share"] <= SHARE_MAX:
        yield "who works for long gets more than half a core"
    if found["left"] != ["everstep-home"]:
        yield "groups are left"


def missing() -> str | None:
    """What cannot be started here."""
    if ROOT.is_relative_to("/tmp"):
        return f"{ROOT} is below /tmp, where that machine has a file system of its own: clone somewhere else"
    lacking = [one for one in ("qemu-system-x86_64", "busybox", "apt-get", "dpkg-deb") if shutil.which(one) is None]
    return f"missing: {', '.join(lacking)}; apt-get install qemu-system-x86 busybox-static" if lacking else None


def kernel() -> Path:
    """Debian's newest, fetched once and unpacked; raises CalledProcessError."""
    place = cache() / "kernel"
    if not (place / "ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        told = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, check=True)
        name = next(word for word in told.stdout.split() if word.startswith("linux-image-") and word[12].isdigit())
        subprocess.run(["apt-get", "download", "-qq", name], cwd=place, stderr=subprocess.DEVNULL, check=True)
        subprocess.run(["dpkg-deb", "-x", str(next(place.glob("*.deb"))), str(place)], check=True)
        (place / "ready").touch()
    return place


def in_order(folder: Path) -> list[Path]:
    """Modules, each after those that it needs: what needs what changes from one kernel to the next."""
    files = {one.stem.replace("-", "_"): one for one in folder.rglob("*.ko")}
    ordered: list[Path] = []

    def add(name: str) -> None:
        found = DEPENDS.search(files[name].read_bytes())
        for needed in found[1].decode().split(",") if found is not None and found[1] else ():
            add(needed)
        if files[name] not in ordered:
            ordered.append(files[name])

    for name in MODULES:
        add(name)
    return ordered


def first_files(folder: Path, unpacked: Path) -> Path:
    """What the machine begins with: busybox, modules, and who starts our command."""
    root = folder / "first"
    for name in ("bin", "m", "proc", "new"):
        (root / name).mkdir(parents=True)
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, root / "bin")
    for number, module in enumerate(in_order(unpacked / "lib/modules")):
        shutil.copy(module, root / "m" / f"{number:02}.ko")
    environ = f"HOME=/tmp PYTHONPATH={ROOT / 'src'}:{ROOT} PYTHONDONTWRITEBYTECODE=1"
    init = root / "init"
    init.write_text(INIT.replace("COMMAND", f"/usr/bin/env {environ} {sys.executable} -m tests.fault.kernel_v2 inside"))
    init.chmod(0o755)
    packed = folder / "first.cpio"
    names = "\n".join(str(one.relative_to(root)) for one in sorted(root.rglob("*")))
    with packed.open("wb") as out:
        subprocess.run([busybox, "cpio", "-o", "-H", "newc"], cwd=root, input=names.encode(), stdout=out, check=True)
    return packed


def told(unpacked: Path) -> Mapping[str, Any] | None:
    """What that machine says; None if it says nothing."""
    (image,) = (unpacked / "boot").glob("vmlinuz-*")
    with tempfile.TemporaryDirectory(prefix="es-") as folder:
        words = ["qemu-system-x86_64", "-accel", "tcg", "-smp", "2", "-m", "2048", "-nographic", "-no-reboot"]
        words += ["-net", "none", "-kernel", str(image), "-initrd", str(first_files(Path(folder), unpacked))]
        words += ["-append", "console=ttyS0 quiet panic=-1"]
        words += ["-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"]
        try:
            ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
        except subprocess.TimeoutExpired as error:
            print((error.stdout or b"").decode(errors="replace")[-2000:])
            return None
    said = ran.stdout.decode(errors="replace")
    line = next((line for line in said.splitlines() if MARK in line), None)
    if line is None:
        print(said[-2000:])
        return None
    found: dict[str, Any] = json.loads(line[line.index(MARK) + len(MARK) :])
    return found


def main() -> int:
    if sys.argv[1:] == ["inside"]:
        asyncio.run(inside())
        return 0
    if (why := missing()) is not None:
        print(f"not run: {why}")
        return 0 if "qemu" in os.environ.get("EVERSTEP_WAIVE", "").split(",") else 1
    found = told(kernel())
    wrong = ["it said nothing"] if found is None else [*judged(found)]
    print(json.dumps(found))
    print(f"a memory bomb, a fork bomb, a burner under control groups of v2: {len(wrong)} wrong", *wrong, sep="; ")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
