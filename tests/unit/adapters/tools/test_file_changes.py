"""Changes of files: whole or not at all, once however often they are repeated, and taken back unless others came."""

import asyncio
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from everstep import Plan
from everstep.adapters import beneath
from everstep.adapters.disk import DiskFull, Reservations
from everstep.adapters.files import Expected, Workspace
from everstep.adapters.threads import Threads
from everstep.adapters.tools.file import FileTools
from everstep.adapters.tools.file_changes import Work, change
from everstep.adapters.undo_journal import UndoJournal
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Impossible, Misconfigured, ToolError
from everstep.testing import Sample, TestEngine, check_adapter
from everstep.testing.conformance.tool import failed
from tests.unit.contexts import call_of, context

TOOLS = FileTools(Threads())
KEYS = itertools.count()


async def called(root: Path, tool: str, arguments: JsonObject, *, key: str = "") -> JsonObject:
    call = call_of(tool, arguments, key=key or f"c{next(KEYS)}")
    result = await TOOLS.execute(call, context(workdir=root))
    assert isinstance(result, dict)
    return result


async def undone(root: Path, tool: str, arguments: JsonObject, key: str) -> None:
    await TOOLS.undo(call_of(tool, arguments, key=key), None, context(workdir=root))


def tree(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything a user can see: content, mode, and times of files."""
    found = {}
    for path in sorted(root.rglob("*")):
        if ".everstep" not in path.parts:
            status = path.lstat()
            data = path.read_bytes() if path.is_file() else b""
            found[str(path.relative_to(root))] = (status.st_mode, status.st_mtime_ns if path.is_file() else 0, data)
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in (("a.txt", "one two one"), ("b.txt", "bee"), ("dir/c.txt", "sea"), ("dir/sub/d.txt", "dee")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (1_700_000_000, 1_700_000_000))
    (tmp_path / "a.txt").chmod(0o640)
    return tmp_path


CHANGES: list[tuple[str, JsonObject]] = [
    ("file.write", {"path": "a.txt", "text": "new"}),
    ("file.write", {"path": "x/y/z.txt", "text": "new"}),
    ("file.append", {"path": "a.txt", "text": "!"}),
    ("file.append", {"path": "new.log", "text": "!"}),
    ("file.edit", {"path": "a.txt", "edits": [{"find": "one", "replace": "1", "count": 2}]}),
    ("file.copy", {"from": "a.txt", "to": "copy.txt"}),
    ("file.copy", {"from": "a.txt", "to": "b.txt", "overwrite": True}),
    ("file.move", {"from": "a.txt", "to": "moved.txt"}),
    ("file.move", {"from": "dir", "to": "elsewhere"}),
    ("file.mkdir", {"path": "fresh"}),
    ("file.delete", {"path": "a.txt"}),
    ("file.delete", {"path": "dir", "recursive": True}),
    (
        "file.apply",
        {
            "ops": [
                {"op": "write", "path": "n.txt", "text": "n"},
                {"op": "delete", "path": "b.txt"},
                {"op": "append", "path": "dir/c.txt", "text": "!"},
            ]
        },
    ),
]


@pytest.mark.req("File.2")
@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
async def test_made_once_and_taken_back(root: Path, tool: str, arguments: JsonObject) -> None:
    """Twice with one key is as once; taken back, bytes, mode and times are as before."""
    before = tree(root)
    told = await called(root, tool, arguments, key="k")
    once = tree(root)
    assert once != before
    again = await called(root, tool, arguments, key="k")
    assert tree(root) == once
    assert {**again, "diff": ""} == {**told, "diff": ""}
    await undone(root, tool, arguments, "k")
    after = tree(root)
    made = {name for name in after if name not in before}
    assert made <= {"x", "x/y"}  # folders that were made on the way are left
    assert {name: after[name] for name in before} == before
    with pytest.raises(Impossible) as gone:
        await undone(root, tool, arguments, "k")
    assert gone.value.code == "undo_expired"


@pytest.mark.req("File.2")
@pytest.mark.parametrize(("tool", "arguments"), [one for one in CHANGES if str(one[1].get("path", "")).endswith("t")])
async def test_what_somebody_changed_since_is_left_alone(root: Path, tool: str, arguments: JsonObject) -> None:
    await called(root, tool, arguments, key="k")
    (root / str(arguments["path"])).write_text("mine")
    now = tree(root)
    with pytest.raises(Impossible) as conflict:
        await undone(root, tool, arguments, "k")
    assert conflict.value.code == "file_conflict"
    assert tree(root) == now
    with pytest.raises(Impossible):  # nor does a repeat write over it
        await called(root, tool, arguments, key="k")
    assert tree(root) == now


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("file.edit", {"path": "a.txt", "edits": [{"find": "one", "replace": "1"}]}, Impossible),
        ("file.edit", {"path": "none", "edits": [{"find": "a", "replace": "b"}]}, FileNotFoundError),
        ("file.copy", {"from": "a.txt", "to": "b.txt"}, FileExistsError),
        ("file.copy", {"from": "dir", "to": "x"}, FileNotFoundError),
        ("file.move", {"from": "dir", "to": "dir/sub/inner"}, Impossible),
        ("file.move", {"from": "a.txt", "to": "dir", "overwrite": True}, FileExistsError),
        ("file.delete", {"path": "dir"}, OSError),
        ("file.mkdir", {"path": "a.txt"}, FileExistsError),
        ("file.write", {"path": "dir", "text": ""}, OSError),
        ("file.write", {"path": "pyproject.toml", "text": "[tool.everstep]\n"}, ToolError),
        (
            "file.apply",
            {"ops": [{"op": "mkdir", "path": "q"}, {"op": "delete", "path": "q"}, {"op": "mkdir", "path": "q"}]},
            Misconfigured,
        ),
    ],
)
@pytest.mark.req("E.5")
async def test_what_cannot_be_done_changes_nothing(
    root: Path, tool: str, arguments: JsonObject, error: type[Exception]
) -> None:
    before = tree(root)
    with pytest.raises(error):
        await called(root, tool, arguments)
    assert tree(root) == before


@pytest.mark.req("File.3")
async def test_a_batch_is_checked_before_its_first_change(root: Path) -> None:
    (root / "b.txt").chmod(0o444)
    before = tree(root)
    ops: list[JsonValue] = [{"op": "append", "path": path, "text": "!"} for path in ("a.txt", "b.txt", "dir/c.txt")]
    with pytest.raises(PermissionError):
        await called(root, "file.apply", {"ops": ops})
    assert tree(root) == before


async def test_a_batch_that_breaks_in_the_middle_is_taken_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, real = tree(root), Workspace.remove

    def breaks(self: Workspace, path: str) -> None:
        if path == "b.txt":
            raise OSError(5, "Input/output error")
        real(self, path)

    monkeypatch.setattr(Workspace, "remove", breaks)
    ops: JsonValue = [{"op": "write", "path": "a.txt", "text": "x"}, {"op": "delete", "path": "b.txt"}]
    with pytest.raises(OSError, match="Input/output"):
        await called(root, "file.apply", {"ops": ops})
    assert tree(root) == before


async def test_what_is_kept_is_bounded(root: Path) -> None:
    tools = FileTools(Threads(), undo_bytes=3_000)
    for number in range(20):
        call = call_of("file.write", {"path": "a.txt", "text": f"{number}" * 500}, key=f"b{number}")
        await tools.execute(call, context(workdir=root))
    kept = sum(file.stat().st_size for file in (root / ".everstep/undo").iterdir())
    assert kept < 6_000


async def test_the_contract(tmp_path: Path) -> None:
    cases = [
        Sample(tool="file.append", arguments={"path": "log", "text": "x"}),
        Sample(tool="file.edit", arguments={"path": "log", "edits": [{"find": "y", "replace": "x"}]}, fits=False),
        Sample(tool="file.apply", arguments={"ops": [{"op": "mkdir", "path": "../x"}]}, fits=False),
        Sample(tool="file.move", arguments={"from": "/etc/passwd", "to": "x"}, fits=False),
    ]
    findings = await check_adapter(FileTools(Threads()), cases)
    assert failed(findings) == []


@pytest.mark.req("WF-26", "File.2")
async def test_a_task_is_taken_back_as_a_whole(root: Path) -> None:
    """Three files changed, one of them by hand since: two come back, one is left alone and listed."""
    plan = Plan("changing")
    for number, path in enumerate(("a.txt", "b.txt", "dir/c.txt")):
        plan.step(f"s{number}", "file.append", {"path": path, "text": "!"})
    before = tree(root)
    async with TestEngine(workspace=root) as engine:
        task = await engine.start(plan)
        assert (await task.result()).status == "completed"
        (root / "b.txt").write_text("by hand")
        undo = await task.undo()
        result = await undo.result()
    after = tree(root)
    assert after["b.txt"][2] == b"by hand"
    assert (after["a.txt"], after["dir/c.txt"]) == (before["a.txt"], before["dir/c.txt"])
    assert "file_conflict" in repr(result)


# --- races and kills ---


@pytest.mark.req("File.4")
@pytest.mark.parametrize("opener", [beneath.walk, beneath.openat2()])
def test_a_folder_that_becomes_a_link_while_it_is_written(tmp_path: Path, opener: beneath.Opener | None) -> None:
    """Flipped all the time (100,000 times in all): nothing ever appears outside."""
    if opener is None:
        pytest.skip("this kernel has no openat2")
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "real").mkdir(parents=True)
    outside.mkdir()
    (root / "link").symlink_to(outside)
    stop, flips = threading.Event(), 0

    def flip() -> None:
        nonlocal flips
        at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        exchange = beneath._renameat2()
        assert exchange is not None
        while not stop.is_set() or flips < 50_000:
            exchange(at, b"real", at, b"link", 2)  # RENAME_EXCHANGE
            flips += 1
        os.close(at)

    flipping = threading.Thread(target=flip)
    flipping.start()
    written = refused = 0
    with Workspace(root, opener=opener) as files:
        for number in range(400):
            try:
                files.write("real/file", b"x" * 100, key=f"{number}", expected=Expected())
                written += 1
            except (ToolError, OSError):
                refused += 1
    stop.set()
    flipping.join()
    assert flips >= 50_000
    assert [*outside.iterdir()] == []
    assert written + refused == 400


WRITER = """
import sys
from pathlib import Path
from everstep.adapters.disk import Reservations
from everstep.adapters.files import Workspace
from everstep.adapters.tools.file_changes import Work, change
from everstep.adapters.undo_journal import UndoJournal
root, text = Path(sys.argv[1]), sys.argv[2] * 300_000
print("begun", flush=True)
while True:
    with Workspace(root) as files:
        journal = UndoJournal(root, bytes_max=1 << 30, window_s=9e9)
        change(Work(files=files, journal=journal, key="k"), "file.write", {"path": "f", "text": text}, Reservations())
        journal.forget("k")
        change(Work(files=files, journal=journal, key="k2"), "file.write", {"path": "f", "text": "old"}, Reservations())
        journal.forget("k2")
"""


@pytest.mark.req("File.1")
def test_killed_while_it_writes(tmp_path: Path) -> None:
    """Old content or new, never a mixture; a repeat of the call removes what the killed one left."""
    (tmp_path / "f").write_text("old")
    seen, stop = set(), threading.Event()

    def read() -> None:
        """Whoever reads all the time sees whole contents."""
        while not stop.is_set():
            seen.add((tmp_path / "f").read_bytes())

    reading = threading.Thread(target=read)
    reading.start()
    for number in range(6):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), "n"], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        threading.Event().wait(0.01 + 0.03 * number)
        child.kill()
        child.wait()
        child.stdout.close()
        for key in ("k", "k2"):
            text = "n" * 300_000 if key == "k" else "old"
            with Workspace(tmp_path) as files:
                journal = UndoJournal(tmp_path, bytes_max=1 << 30, window_s=9e9)
                change(
                    Work(files=files, journal=journal, key=key),
                    "file.write",
                    {"path": "f", "text": text},
                    Reservations(),
                )
                journal.forget(key)
        assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []
        assert (tmp_path / "f").read_text() == "old"
    stop.set()
    reading.join()
    assert seen == {b"old", b"n" * 300_000}


# --- disk ---


@pytest.mark.req("7.4", "E.4")
def test_space_is_promised_before_it_is_used() -> None:
    def space() -> tuple[int, int]:
        return 64_000_000, 64_000_000

    promised = Reservations()
    with pytest.raises(DiskFull) as refused, promised.reserved(space, 100_000_000):
        pass
    assert refused.value.code == "limit_disk"
    assert refused.value.details is not None
    assert (refused.value.details["needed"], refused.value.details["free"]) == (100_000_000, 64_000_000)
    with promised.reserved(space, 40_000_000), pytest.raises(DiskFull), promised.reserved(space, 40_000_000):
        pass
    with promised.reserved(space, 40_000_000):
        pass


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """64 MB; needs a machine that lets us mount."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.decode()}")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.req("7.4")
async def test_a_full_disk_is_noticed_before_the_first_byte(small_disk: Path) -> None:
    with pytest.raises(DiskFull) as refused:
        await called(small_disk, "file.write", {"path": "big", "text": "x" * 100_000_000})
    assert refused.value.details is not None
    needed, free = refused.value.details["needed"], refused.value.details["free"]
    assert needed == 100_000_000
    assert isinstance(free, int)
    assert 0 < free <= 64 << 20
    assert os.listdir(small_disk) == []  # noqa: PTH208
    both = await asyncio.gather(
        *(called(small_disk, "file.write", {"path": f"f{n}", "text": "x" * 40_000_000}) for n in range(2)),
        return_exceptions=True,
    )
    assert sorted(type(one).__name__ for one in both) == ["DiskFull", "dict"]
    assert [file.stat().st_size for file in small_disk.glob("f*")] == [40_000_000]  # noqa: ASYNC240 -- two files
