"""Beneath-only files: what paths may say, what links may do, and what a killed write leaves."""

import ctypes
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everstep.adapters import beneath
from everstep.adapters.beneath import Opener, openat2, walk
from everstep.adapters.files import Expected, Workspace, temporary_name
from everstep.adapters.paths import names_of
from everstep.ports.tool import Denied, Impossible, Misconfigured, Transient
from tests.unit.adapters.hostile import REFUSED

ANY = Expected()
OPENERS = [pytest.param(opener, id=name) for name, opener in (("walk", walk), ("openat2", openat2())) if opener]


@pytest.fixture(params=OPENERS)
def opener(request: pytest.FixtureRequest) -> Opener:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture
def files(root: Path, opener: Opener) -> Iterator[Workspace]:
    with Workspace(root, opener=opener) as workspace:
        yield workspace


def test_the_kernel_is_asked_here() -> None:
    assert openat2() is not None, "on Linux the tests must see both ways"


def test_a_kernel_without_the_call_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beneath, "_SYS_OPENAT2", 9_999)
    openat2.cache_clear()
    assert openat2() is None
    assert beneath.best_opener() is walk
    openat2.cache_clear()


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


# --- paths ---


@pytest.mark.req("File.4")
def test_the_corpus_is_large_and_without_repeats() -> None:
    assert len(set(REFUSED)) == len(REFUSED) >= 300


@pytest.mark.req("File.4")
@pytest.mark.parametrize("path", REFUSED, ids=[f"{at}-{ascii(path)[:30]}" for at, path in enumerate(REFUSED)])
def test_hostile_paths_are_refused_everywhere(files: Workspace, root: Path, path: str) -> None:
    for attempt in (
        lambda: files.read(path),
        lambda: files.find(path),
        lambda: files.write(path, b"x", key="k", expected=ANY),
        lambda: files.folder(path).__enter__(),
    ):
        with pytest.raises((Denied, Misconfigured)):
            attempt()
    assert list(root.iterdir()) == []
    assert [entry.name for entry in root.parent.iterdir()] == ["ws"]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("a.txt", (b"a.txt",)),
        ("./a//b/./c", (b"a", b"b", b"c")),
        (".", ()),
        ("a/", (b"a",)),
        (".hidden/a…", (b".hidden", "a…".encode())),
        ("notes/a: b.txt", (b"notes", b"a: b.txt")),
        ("%2e%2e/x", (b"%2e%2e", b"x")),
        ("~/x", (b"~", b"x")),
        ("...a", (b"...a",)),
        ("Grüße.txt", ("Grüße.txt".encode(),)),
    ],
)
def test_ordinary_paths(path: str, names: tuple[bytes, ...]) -> None:
    assert names_of(path) == names


@given(st.text(st.characters(), max_size=40))
@example("a/../b")
@example("\ud800")
def test_no_path_leaves(path: str) -> None:
    try:
        names = names_of(path)
    except (Denied, Misconfigured):
        return
    for name in names:
        assert name not in {b"", b".", b".."}
        assert b"/" not in name
        assert b"\0" not in name
        assert not name.lower().startswith(b".everstep")


# --- reading and writing ---


def test_what_was_written_is_read(files: Workspace, root: Path) -> None:
    written = files.write("notes/deep/a.txt", b"one", key="k1", expected=ANY)
    assert (written.created, written.size_bytes) == (True, 3)
    content = files.read("notes/deep/a.txt")
    assert (content.data, content.sha256) == (b"one", written.sha256)
    again = files.write("notes/deep/a.txt", b"two!", key="k2", expected=ANY)
    assert not again.created
    assert (root / "notes/deep/a.txt").read_bytes() == b"two!"
    assert names_in(root / "notes/deep") == ["a.txt"]


def test_parts_and_the_hash_of_the_whole(files: Workspace) -> None:
    whole = files.write("a", b"0123456789", key="k", expected=ANY)
    part = files.read("a", 3, 4)
    assert (part.data, part.size_bytes, part.sha256) == (b"3456", 10, whole.sha256)
    assert files.read("a", 50, 4).data == b""


def test_the_mode_is_kept(files: Workspace, root: Path) -> None:
    files.write("a", b"1", key="k1", expected=ANY)
    (root / "a").chmod(0o640)
    files.write("a", b"2", key="k2", expected=ANY)
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o640


def test_conditions(files: Workspace) -> None:
    first = files.write("a", b"one", key="k1", expected=Expected(absent=True))
    assert first.created
    assert not files.write("a", b"one", key="k1", expected=Expected(absent=True)).created, "a repeat is done"
    with pytest.raises(Impossible, match="exists already"):
        files.write("a", b"two", key="k2", expected=Expected(absent=True))
    with pytest.raises(Impossible, match="was changed"):
        files.write("a", b"two", key="k2", expected=Expected(sha256="0" * 64))
    with pytest.raises(Impossible, match="does not exist"):
        files.write("b", b"two", key="k2", expected=Expected(sha256="0" * 64))
    files.write("a", b"two", key="k2", expected=Expected(sha256=first.sha256))
    assert files.read("a").data == b"two"


def test_a_repeat_removes_what_a_killed_write_left(files: Workspace, root: Path) -> None:
    (root / os.fsdecode(temporary_name("k1"))).write_bytes(b"half")
    (root / os.fsdecode(temporary_name("k2"))).write_bytes(b"another call's")
    files.write("a", b"whole", key="k1", expected=ANY)
    assert names_in(root) == [os.fsdecode(temporary_name("k2")), "a"]


def test_a_failed_write_leaves_nothing(files: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write("a", b"old", key="k1", expected=ANY)
    (root / "a").chmod(0o600)

    def full(_file: int, _data: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        files.write("a", b"newer", key="k2", expected=ANY)
    monkeypatch.undo()
    assert names_in(root) == ["a"]
    assert files.read("a").data == b"old"


def test_a_file_that_came_meanwhile_is_left_alone(
    files: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def racing(file: int) -> None:
        (root / "a").write_bytes(b"theirs")
        flush(file)

    monkeypatch.setattr(os, "fsync", racing)
    with pytest.raises(FileExistsError):
        files.write("a", b"ours", key="k", expected=Expected(absent=True))
    monkeypatch.undo()
    assert (root / "a").read_bytes() == b"theirs"
    assert names_in(root) == ["a"]


@pytest.mark.parametrize("code", [38, 22])
def test_systems_that_cannot_promise_it_rename_plainly(
    files: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(ctypes, "get_errno", lambda: code)
    monkeypatch.setattr(beneath, "_renameat2", lambda: lambda *_: -1)
    files.write("a", b"1", key="k", expected=ANY)
    monkeypatch.setattr(beneath, "_renameat2", lambda: None)
    files.write("b", b"1", key="k", expected=ANY)
    assert names_in(root) == ["a", "b"]


def test_a_read_ends_when_the_call_should(root: Path) -> None:
    (root / "a").write_bytes(b"x")
    with Workspace(root, stop=lambda: True) as files, pytest.raises(Transient, match="ended"):
        files.read("a")


# --- links, and what is no file ---


@pytest.fixture
def outside(root: Path) -> Path:
    folder = root.parent / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(b"secret")
    return folder


def test_links_are_never_followed(files: Workspace, root: Path, outside: Path) -> None:
    (root / "file").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    (root / "inner").symlink_to("real")
    (root / "dangling").symlink_to("nowhere")
    (root / "real").mkdir()
    (root / "magic").symlink_to("/proc/self/root")
    refused = (Denied, NotADirectoryError)
    for path in ("file", "folder/secret", "inner/x", "dangling", "magic/etc/passwd", "folder", "inner"):
        with pytest.raises(refused):
            files.read(path)
        with pytest.raises(refused):
            files.write(path, b"x", key="k", expected=ANY)
    with pytest.raises(refused):
        files.write("folder/new/deep", b"x", key="k", expected=ANY)
    found = files.find("file")
    assert found is not None
    assert stat.S_ISLNK(found.st_mode)
    assert names_in(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"
    assert names_in(root / "real") == []


def test_a_file_with_other_names_is_read_but_not_written(files: Workspace, root: Path, outside: Path) -> None:
    os.link(outside / "secret", root / "hard")
    assert files.read("hard").data == b"secret"
    with pytest.raises(Denied, match="other names"):
        files.write("hard", b"x", key="k", expected=ANY)
    assert (outside / "secret").read_bytes() == b"secret"


def test_only_regular_files(files: Workspace, root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "folder").mkdir()
    listener = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    try:
        os.chdir(root)  # a socket's path must be short
        listener.bind("socket")
    finally:
        os.chdir(here)
    for path in ("fifo", "socket", "folder", "."):
        with pytest.raises(Denied):
            files.read(path)
        with pytest.raises(Denied):
            files.write(path, b"x", key="k", expected=ANY)
    listener.close()


def test_what_is_missing_is_named_as_the_plan_names_it(files: Workspace) -> None:
    with pytest.raises(FileNotFoundError, match="'no/such'"):
        files.read("no/such")
    assert files.find("no/such") is None
    files.write("a", b"1", key="k", expected=ANY)
    assert files.find("a/b") is None
    with pytest.raises(NotADirectoryError):
        files.write("a/b", b"1", key="k", expected=ANY)


def test_what_may_not_be_written_is_not_replaced(files: Workspace, root: Path) -> None:
    files.write("a", b"1", key="k", expected=ANY)
    (root / "a").chmod(0o444)
    root.chmod(0o777)
    me = os.geteuid()
    os.seteuid(me or 65_534)  # root may do anything
    try:
        with pytest.raises(PermissionError):
            files.write("a", b"2", key="k", expected=ANY)
    finally:
        os.seteuid(me)
    assert (root / "a").read_bytes() == b"1"
    assert names_in(root) == ["a"]


FLIPS = 20_000


def test_a_folder_that_flips_to_a_link_leads_nowhere(root: Path, outside: Path, opener: Opener) -> None:
    """Somebody exchanges a folder and a link to the outside as fast as they can, while we read and write there."""
    (root / "d").mkdir()
    (root / "d" / "secret").write_bytes(b"inside")
    (root / "other").symlink_to(outside)
    here = os.open(root, os.O_DIRECTORY)
    exchange, left = ctypes.CDLL(None, use_errno=True).renameat2, FLIPS

    def flip() -> None:
        nonlocal left
        while left and exchange(here, b"d", here, b"other", 2) == 0:
            left -= 1

    flipper = threading.Thread(target=flip)
    flipper.start()
    kept: Counter[str] = Counter()
    with Workspace(root, opener=opener) as files:
        while flipper.is_alive():
            with suppress(Denied, NotADirectoryError):
                assert files.read("d/secret").data == b"inside"
                kept["read"] += 1
            with suppress(Denied, NotADirectoryError):
                files.write("d/new", str(kept["written"]).encode(), key="k", expected=ANY)
                kept["written"] += 1
            kept["tried"] += 1
    flipper.join()
    os.close(here)
    assert left == 0
    assert kept["tried"]
    assert names_in(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == b"secret"


WRITER = """
    import sys
    from pathlib import Path
    from everstep.adapters.files import Expected, Workspace
    root, call = Path(sys.argv[1]), sys.argv[2]
    content = {b: bytes([b]) * 300_000 for b in b"ab"}
    with Workspace(root) as files:
        if call:
            files.write("f", content[ord("a")], key=call, expected=Expected())
        else:
            print("ready", flush=True)
            for n in range(10**9):
                files.write("f", content[b"ab"[n % 2]], key="k1", expected=Expected())
                print(".", end="", flush=True)
"""
KILLS = 10


def test_a_killed_write_leaves_the_old_or_the_new_content(root: Path) -> None:
    """SIGKILL after a varying number of writes; a reader of whole files sees one content or the other."""
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(root)]
    for kill in range(KILLS):
        writer = subprocess.Popen([*command, ""], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        writer.stdout.read(1 + kill % 5)
        for _ in range(20):
            assert set((root / "f").read_bytes()) in ({97}, {98})
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        content = (root / "f").read_bytes()
        assert content in {b"a" * 300_000, b"b" * 300_000}
        assert set(names_in(root)) <= {"f", os.fsdecode(temporary_name("k1"))}
    subprocess.run([*command, "k1"], check=True)
    assert names_in(root) == ["f"], "the repeat removed what was left behind"
