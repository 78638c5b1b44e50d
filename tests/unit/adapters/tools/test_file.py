"""`file.*`, called as the engine calls them."""

import asyncio
import hashlib
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everstep.adapters.files import Content, temporary_name
from everstep.adapters.threads import Threads
from everstep.adapters.tools import listing
from everstep.adapters.tools.file import FileTools, _text
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Denied, Impossible, Misconfigured
from everstep.wire.schema import compile_schema
from tests.unit.contexts import call_of, context

TOOLS = FileTools(Threads())
KEYS = itertools.count()
SPECS = {spec.name: spec for spec in TOOLS.tools()}


async def called(root: Path, name: str, *, key: str = "", **arguments: JsonValue) -> JsonObject:
    key = key or f"k{next(KEYS)}"
    call = call_of(name, {word.rstrip("_"): value for word, value in arguments.items()}, key=key)
    assert compile_schema(SPECS[name].input_schema)(call.arguments) == []
    result = await TOOLS.execute(call, context(workdir=root))
    schema = SPECS[name].output_schema
    assert schema is not None
    assert compile_schema(schema)(result) == []
    assert isinstance(result, dict)
    return result


def test_the_specs() -> None:
    assert {name: spec.effect for name, spec in SPECS.items()} == {
        "file.read": Effect.PURE,
        "file.list": Effect.PURE,
        "file.stat": Effect.PURE,
        **{
            f"file.{verb}": Effect.IDEMPOTENT for verb in ("write", "append", "edit", "copy", "move", "mkdir", "delete")
        },
        "file.apply": Effect.IDEMPOTENT,
    }
    for spec in SPECS.values():
        assert (spec.isolation, spec.timeout_ms) == ("thread", 30_000)
        properties = spec.input_schema["properties"]
        assert isinstance(properties, dict)
        path = properties.get("path") or properties.get("from") or properties["ops"]
        assert isinstance(path, dict)
        assert path["x-everstep-kind"] == "checked"
        for argument in properties.values():
            assert isinstance(argument, dict)
            assert argument["description"]


async def test_written_and_read(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"hello").hexdigest()
    written = await called(tmp_path, "file.write", path="notes/a.txt", text="hello")
    assert written == {"path": "notes/a.txt", "bytes": 5, "sha256": digest, "created": True}
    assert await called(tmp_path, "file.read", path="notes/a.txt") == {
        "path": "notes/a.txt",
        "text": "hello",
        "bytes": 5,
        "sha256": digest,
        "truncated": False,
    }
    again = await called(tmp_path, "file.write", path="notes/a.txt", text="hello")
    assert again == written | {"created": False}


async def test_conditions(tmp_path: Path) -> None:
    first = await called(tmp_path, "file.write", path="a", text="1", if_="absent")
    with pytest.raises(Impossible) as conflict:
        await called(tmp_path, "file.write", path="a", text="2", if_="absent")
    assert conflict.value.code == "file_conflict"
    await called(tmp_path, "file.write", path="a", text="2", if_=first["sha256"])
    assert (tmp_path / "a").read_text() == "2"


async def test_a_part_of_a_file_is_whole_characters(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("aüö€z", encoding="utf-8")
    part = await called(tmp_path, "file.read", path="a", range={"start": 2, "length": 5})
    assert (part["text"], part["truncated"]) == ("ö", True)
    rest = await called(tmp_path, "file.read", path="a", range={"start": 5})
    assert rest["text"] == "€z"


@given(st.text(st.characters(codec="utf-8")), st.integers(0, 30), st.integers(1, 30))
def test_any_part_of_any_text_is_readable(text: str, start: int, length: int) -> None:
    data = text.encode()
    content = Content(data=data[start : start + length], size_bytes=len(data), sha256="")
    assert _text("a", content, start) in text


async def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    for data in (b"\xff\xfe", b"ok \xc3", b"\x80" * 9):
        (tmp_path / "a").write_bytes(data)
        with pytest.raises(Misconfigured, match="not UTF-8") as refused:
            await called(tmp_path, "file.read", path="a")
        assert refused.value.code == "file_not_text"


async def test_listing(tmp_path: Path) -> None:
    for path in ("b.md", "a.txt", "sub/c.md", "sub/deep/d.md", ".everstep/x", "everstep.toml"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("xy")
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / os.fsdecode(temporary_name("k"))).touch()
    (tmp_path / os.fsdecode(b"\xff")).touch()

    async def paths(path: str = ".", glob: str = "*", depth: int = 1) -> list[JsonValue]:
        entries = (await called(tmp_path, "file.list", path=path, glob=glob, depth=depth))["entries"]
        assert isinstance(entries, list)
        return [entry["path"] for entry in entries if isinstance(entry, dict)]

    top = await called(tmp_path, "file.list")
    assert top == {
        "path": ".",
        "entries": [
            {"path": "a.txt", "type": "file", "bytes": 2},
            {"path": "b.md", "type": "file", "bytes": 2},
            {"path": "fifo", "type": "other", "bytes": None},
            {"path": "link", "type": "link", "bytes": None},
            {"path": "sub", "type": "folder", "bytes": None},
        ],
        "truncated": False,
    }
    assert await paths(glob="*.md", depth=9) == ["b.md", "sub/c.md", "sub/deep/d.md"]
    assert await paths(glob="sub/*.md", depth=2) == ["sub/c.md"]
    assert await paths(path="./sub/", depth=2) == ["sub/c.md", "sub/deep", "sub/deep/d.md"]
    with pytest.raises((Denied, NotADirectoryError)):
        await called(tmp_path, "file.list", path="link")
    with pytest.raises(NotADirectoryError):
        await called(tmp_path, "file.list", path="a.txt")


async def test_a_long_listing_says_that_it_was_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "ENTRIES_MAX", 2)
    for name in "abc":
        (tmp_path / name).touch()
    cut = await called(tmp_path, "file.list")
    assert isinstance(cut["entries"], list)
    assert (len(cut["entries"]), cut["truncated"]) == (2, True)


async def test_looking(tmp_path: Path) -> None:
    assert (await called(tmp_path, "file.stat", path="a"))["exists"] is False
    (tmp_path / "a").write_text("xy")
    os.utime(tmp_path / "a", (1_800_000_000, 1_800_000_000))
    assert await called(tmp_path, "file.stat", path="a") == {
        "path": "a",
        "exists": True,
        "type": "file",
        "bytes": 2,
        "sha256": hashlib.sha256(b"xy").hexdigest(),
        "modified_at": "2027-01-15T08:00:00.000Z",
    }
    folder = await called(tmp_path, "file.stat", path=".")
    assert (folder["type"], folder["bytes"], folder["sha256"]) == ("folder", None, None)


OURS = '[tool.everstep]\nstore = "x"\n'


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (None, "[project]\n", True),
        ("[project]\n", "[project]\nname = 'a'\n", True),
        (None, OURS, False),
        (None, "tool = {everstep = {}}", False),
        (OURS, "[project]\n", False),
        ('["tool"."everstep"]\n', "", False),
        (None, "tool = 3", True),
        (None, "[tool.everstep", False),
        (None, "[tool.other", True),
    ],
)
async def test_a_configuration_is_changed_by_people_only(
    tmp_path: Path, old: str | None, new: str, allowed: bool
) -> None:
    file = tmp_path / "pyproject.toml"
    if old is not None:
        file.write_text(old)
    if allowed:
        await called(tmp_path, "file.write", path="pyproject.toml", text=new)
        assert file.read_text() == new
    else:
        with pytest.raises(Denied, match=r"\[tool.everstep\]"):
            await called(tmp_path, "file.write", path="pyproject.toml", text=new)
        assert (file.read_text() if file.exists() else None) == old


def test_a_hostile_path_is_a_problem_before_any_call() -> None:
    assert TOOLS.validate(call_of("file.list", {})) == ()
    assert TOOLS.validate(call_of("file.write", {"path": "a", "text": ""})) == ()
    problems = TOOLS.validate(call_of("file.write", {"path": "../a", "text": ""}))
    assert [where for where, _ in problems] == ["/path"]


async def test_calls_are_independent(tmp_path: Path) -> None:
    writes = [called(tmp_path, "file.write", key=f"i{n}", path=f"d/{n}", text=str(n)) for n in range(20)]
    await asyncio.gather(*writes)
    assert {file.name: file.read_text() for file in (tmp_path / "d").iterdir()} == {str(n): str(n) for n in range(20)}


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 -- of this process


async def test_handles_stay_flat(tmp_path: Path) -> None:
    await called(tmp_path, "file.write", path="a/b", text="x")
    before = handles()
    for n in range(50):
        await called(tmp_path, "file.write", key=f"h{n}", path="a/b", text=str(n))
        await called(tmp_path, "file.read", path="a/b")
        await called(tmp_path, "file.list", depth=3)
        for bad in ("a", "a/b/c"):
            with pytest.raises((Denied, OSError)):
                await called(tmp_path, "file.read", path=bad)
            with pytest.raises((Denied, OSError)):
                await called(tmp_path, "file.write", path=bad, text="x")
    assert handles() == before
