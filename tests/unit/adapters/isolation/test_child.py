"""Programs that mean harm, each stopped within its limit and nothing of it left (F40, F41, S50, S55)."""

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import psutil
import pytest

from everstep.adapters.isolation import watch
from everstep.adapters.isolation.child import Bounds, Child, Ended, Program
from everstep.adapters.isolation.group import best_roots

SH = "/bin/sh"
UID = 61184
USUAL = Bounds()
OUTSIDE = Path(f"/tmp/everstep-outside-{os.getpid()}")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the other user reaches too; those of pytest are closed to it."""
    folder = Path(mkdtemp(prefix="everstep-walls-", dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def left_outside() -> bool:
    """Whether something was written where nothing may be; it is removed."""
    found = OUTSIDE.exists()
    OUTSIDE.unlink(missing_ok=True)
    return found


def on_disk(place: Path) -> int:
    """Bytes that the files in a folder take up."""
    return sum(file.stat().st_blocks * 512 for file in place.iterdir())


async def ran(place: Path, script: str, bounds: Bounds = USUAL, **walls: object) -> Ended:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    program = Program(
        argv=(SH, "-c", script),
        cwd=str(place),
        bounds=bounds,
        uid=UID,
        writes=(str(place),),
        **walls,  # type: ignore[arg-type]
    )
    ended = await Child(program).run()
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before
    assert ended.gone
    return ended


async def test_an_ordinary_program(place: Path) -> None:
    ended = await ran(place, 'read line; echo "got $line"; echo oops >&2; echo kept > file; exit 3')
    assert (ended.exit_code, bytes(ended.stdout.data), bytes(ended.stderr.data)) == (3, b"got \n", b"oops\n")
    assert (place / "file").read_text() == "kept\n"
    program = Program(argv=(SH, "-c", "cat"), cwd=str(place), stdin=b"x" * 300_000, uid=UID)
    assert (await Child(program).run()).stdout.size_bytes == 300_000


BOTH = pytest.mark.parametrize("without", [(), ("cgroup",)], ids=["group", "watched"])
"""With what the kernel counts, where there is such a thing, and by watching alone."""


@BOTH
@pytest.mark.req("7.1", "R.1", "N.2")
async def test_a_memory_bomb(place: Path, without: tuple[str, ...]) -> None:
    bomb = "awk 'BEGIN{ s = sprintf(\"%1000s\", 1); for (i = 0; ; i++) a[i] = s i }'"
    ended = await ran(place, bomb, Bounds(memory_bytes=60_000_000), without=without)
    assert ended.over is not None
    name, used, most = ended.over
    assert (name, most) == ("memory", 60_000_000)
    assert used > most
    grouped = ended.containment is not None and ended.containment["cgroup"] != "none"
    assert 54_000_000 <= ended.memory_peak_bytes < (66_000_000 if grouped else 600_000_000)


@BOTH
@pytest.mark.req("N.2")
async def test_a_cpu_burner(place: Path, without: tuple[str, ...]) -> None:
    ended = await ran(place, "while :; do :; done & while :; do :; done", Bounds(cpu_s=0.5), without=without)
    assert ended.over is not None
    assert ended.over[0] == "cpu_time"
    assert 0.5 <= ended.cpu_s < 10  # how near to its limit is for bench.limits


@BOTH
@pytest.mark.req("N.2")
async def test_a_fork_bomb(place: Path, without: tuple[str, ...]) -> None:
    ended = await ran(place, "f() { f | f & }; f; sleep 5", Bounds(processes=24, cpu_s=5), without=without)
    if not without and best_roots() is not None:
        assert ended.over is not None
        assert ended.over[0] == "processes"
    assert ended.over is None or ended.over[0] == "processes"
    assert ended.wall_s < 30


@BOTH
@pytest.mark.req("N.2")
async def test_a_bomb_of_threads(place: Path, without: tuple[str, ...]) -> None:
    """Threads count as processes do."""
    lines = "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    ended = await ran(place, f"exec python3 -c '{lines}'", Bounds(processes=24), without=without)
    assert b"can't start new thread" in ended.stderr.data
    assert ended.wall_s < 30


@BOTH
@pytest.mark.req("N.2")
async def test_a_bomb_of_empty_files(place: Path, without: tuple[str, ...]) -> None:
    """They have no bytes, but to make them takes time and room in folders: one of both runs out."""
    script = "i=0; while :; do : > f$i; i=$((i+1)); done"
    ended = await ran(place, script, Bounds(cpu_s=1, disk_bytes=1_000_000), without=without)
    assert ended.over is not None
    assert ended.over[0] in {"cpu_time", "disk"}


@pytest.mark.parametrize("argv", [("x" * 3_000_000,), ("x" * 1000,) * 20_000], ids=["long", "many"])
async def test_arguments_that_no_program_can_take(place: Path, argv: tuple[str, ...]) -> None:
    ended = await Child(Program(argv=("/bin/echo", *argv), cwd=str(place), uid=UID)).run()
    assert (ended.begun, ended.exit_code) == (False, 126)
    assert b"Argument list too long" in ended.stderr.data


@pytest.mark.skipif(best_roots() is None, reason="no control groups here")
@pytest.mark.req("7.2", "R.2")
async def test_one_that_works_for_long_gets_half_a_core(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two busy loops would take two cores; after the first tenth of a second they take half of one together."""
    monkeypatch.setattr(watch, "BUSY_CPU_S", 0.1)
    began = time.monotonic()
    ended = await ran(place, "while :; do :; done & (sleep 3; kill $$) & while :; do :; done")
    assert ended.over is None
    slack = 2.5  # until it was seen to be busy; without the group it would be twice the time that passed
    assert ended.cpu_s <= 0.55 * (time.monotonic() - began) + slack
    assert ended.cpu_s > 0.1


@pytest.mark.skipif(best_roots() is None, reason="no control groups here")
async def test_no_group_is_left(place: Path) -> None:
    roots = best_roots()
    assert roots is not None
    ended = await ran(place, "setsid sleep 60 & exit 0")
    assert ended.containment is not None
    assert ended.containment["cgroup"] == roots.version
    mine = f"everstep-{os.getpid()}-*"
    assert [found for folder in roots.folders.values() for found in folder.glob(mine)] == []


FLOODS = {
    "lines": ("yes", b"y\n"),
    "no newline": ("yes | tr -d '\\n'", b"y"),
    "zeros": ("cat /dev/zero", b"\0"),
    "no text": (r"""yes "$(printf '\377\355\240\200')" """, b"\xff\xed\xa0\x80\n"),
    "colours": (r"""yes "$(printf '\033[31m')" """, b"\x1b[31m\n"),
}
FLOOD_MB = int(os.environ.get("EVERSTEP_TEST_FLOOD_MB", "40"))


@pytest.mark.parametrize(("command", "pattern"), FLOODS.values(), ids=list(FLOODS))
@pytest.mark.req("N.2")
async def test_an_output_flood(place: Path, command: str, pattern: bytes) -> None:
    """What is kept is bounded, and so is the memory it takes; how much there was is counted, and named by its hash."""
    size = FLOOD_MB * 1_000_000
    me, seen = psutil.Process(), [psutil.Process().memory_info().rss]
    flowing = asyncio.ensure_future(ran(place, f"{command} | head -c {size}", Bounds(output_bytes=1000)))
    while not (await asyncio.wait((flowing,), timeout=0.05))[0]:
        seen.append(me.memory_info().rss)
    ended = await flowing
    assert (len(ended.stdout.data), ended.stdout.size_bytes) == (1000, size)
    assert max(seen) < seen[0] + 64_000_000
    whole, piece = hashlib.sha256(), pattern * (1_000_000 // len(pattern))
    for at in range(0, size, len(piece)):
        whole.update(piece[: size - at])
    assert ended.stdout.digest.hexdigest() == whole.hexdigest()


FILLERS = {
    "one file": "cat /dev/zero > big",
    "many files": "i=0; while :; do head -c 400000 /dev/zero > f$i; i=$((i+1)); done",
    "many at once": "i=0; while [ $i -lt 20 ]; do (while :; do cat /dev/zero >> f$i; done) & i=$((i+1)); done; wait",
}


@pytest.mark.parametrize("without", [(), ("namespaces", "cgroup")], ids=["walls", "watched"])
@pytest.mark.parametrize("script", FILLERS.values(), ids=list(FILLERS))
@pytest.mark.req("N.2")
async def test_a_disk_filler(place: Path, script: str, without: tuple[str, ...]) -> None:
    """What counts is what was written in all: it is stopped, and the figure is the truth.

    How far many files get past the limit is a matter of time, and measured: `python -m bench.limits each`.
    """
    most = 40_000_000
    ended = await ran(place, script, Bounds(disk_bytes=most, cpu_s=60), without=without)
    assert ended.over is not None
    assert ended.over[0] == "disk"
    assert ended.disk_bytes > most
    assert ended.disk_bytes < most + 200_000 or script != FILLERS["one file"]
    assert on_disk(place) == pytest.approx(ended.disk_bytes, rel=0.1)


@pytest.mark.req("6.5")
async def test_of_one_that_had_to_be_ended_all_is_known_too(place: Path) -> None:
    """CPU time, and what was written and printed; also by those that were detached."""
    script = (
        "(setsid sh -c 'head -c 9000000 /dev/zero > a; echo a; sleep 60' &); head -c 9000000 /dev/zero > b; sleep 60"
    )
    child = Child(Program(argv=(SH, "-c", script), cwd=str(place), uid=UID, writes=(str(place),)))
    running = asyncio.ensure_future(child.run())
    while b"a" not in child._out.data or on_disk(place) < 17_900_000:  # noqa: ASYNC110 -- nobody tells
        await asyncio.sleep(0.02)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert child.ended is not None
    assert child.ended.disk_bytes == pytest.approx(18_000_000, rel=0.1)
    assert child.ended.stdout.size_bytes == 2
    assert child.ended.cpu_s > 0


@pytest.mark.req("6.5")
async def test_of_one_that_nobody_looked_at_the_kernel_knows(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was over too soon: its memory is what the kernel has counted, not 0, and not that of whoever started it."""
    monkeypatch.setattr(watch.Watch, "look", lambda *_: None)
    ours = bytearray(200_000_000)
    ended = await ran(place, "exit 0", without=("cgroup",))
    assert 1_000_000 < ended.memory_peak_bytes < len(ours) / 2
    larger = await ran(place, "exec python3 -c 'bytearray(100_000_000)'", without=("cgroup",))
    assert larger.memory_peak_bytes > len(ours) / 2


@pytest.mark.req("R.4")
async def test_too_many_files(place: Path) -> None:
    ended = await ran(
        place, 'i=3; while [ $i -lt 60 ]; do eval "exec $i>f$i" || exit 9; i=$((i+1)); done', Bounds(files=16)
    )
    assert ended.exit_code not in {0, None}


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize(
    "script",
    [
        "setsid sh -c 'sleep 60' & exit 0",
        "(setsid sh -c '(sleep 60 &) &' &) ; exit 0",
        "trap '' TERM INT HUP; sleep 60 & exit 0",
        "sleep 60 >&1 2>&1 & exit 0",
    ],
)
async def test_nothing_outlives_it(place: Path, script: str, namespaces: bool) -> None:
    """Detached, orphaned, deaf to signals, holding the pipe: it ends with the attempt, with a namespace or without."""
    began = time.monotonic()
    ended = await ran(place, script, without=() if namespaces else ("namespaces",))
    assert ended.exit_code == 0
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("namespaces", [True, False])
async def test_a_cancelled_attempt_takes_its_tree_along(place: Path, namespaces: bool) -> None:
    script = "trap '' TERM; setsid sleep 60 & echo begun; sleep 60"
    program = Program(
        argv=(SH, "-c", script),
        cwd=str(place),
        uid=UID,
        writes=(str(place),),
        without=() if namespaces else ("namespaces",),
    )
    child = Child(program)
    running = asyncio.ensure_future(child.run())
    while b"begun" not in child._out.data:  # noqa: ASYNC110 -- what it says comes by a pipe
        await asyncio.sleep(0.02)
    for _ in range(5):  # whoever asks again and again gets nothing else
        running.cancel()
        await asyncio.sleep(0.001)
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.monotonic() - began < 30
    assert not [
        one
        for one in psutil.process_iter(["cmdline"])
        if one.info["cmdline"] == ["sleep", "60"] and one.is_running() and one.status() != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.skipif(os.getuid() != 0, reason="as another user the outside is closed anyway")
@pytest.mark.parametrize("without", [(), ("namespaces",), ("landlock",), ("seccomp",)])
async def test_each_wall_is_reported_as_it_stands(place: Path, without: tuple[str, ...]) -> None:
    """S55: what is in force is found by building it; a program of strangers does not begin where a wall is missing."""
    ended = await ran(place, f"cat /etc/shadow; echo x > {OUTSIDE}; id -u", without=without)
    held = ended.containment
    assert held is not None
    lacking = {"landlock": ["landlock"], "seccomp": ["seccomp"]}
    assert held["missing"] == [name for wall in without for name in lacking.get(wall, [])]
    assert held["level"] == ("limited" if held["missing"] else "restricted")
    assert held["uid"] == UID
    assert held["network"] == "none"
    assert not left_outside() or "landlock" in without
    strangers = await ran(place, "echo begun > begun", without=without, require="restricted")
    assert list(strangers.refused) == held["missing"]
    assert (place / "begun").exists() is not bool(held["missing"])


async def test_the_environment_is_a_short_list(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERSTEP_SECRET_X", "hunter2-correct-horse")
    ended = await ran(place, "env; ls -l /proc/self/fd; ulimit -c; umask")
    text = bytes(ended.stdout.data).decode()
    assert "hunter2" not in text
    assert "0077" in text


async def test_the_loop_is_not_held_up(place: Path) -> None:
    lags: list[float] = []

    async def tick() -> None:
        while True:
            began = time.thread_time()  # what we do ourselves; a busy machine is not our fault
            await asyncio.sleep(0.01)
            lags.append(time.thread_time() - began)

    ticking = asyncio.ensure_future(tick())
    await ran(place, "yes | head -c 50000000", Bounds(output_bytes=1000))
    ticking.cancel()
    assert sorted(lags)[int(len(lags) * 0.99)] < 0.25
