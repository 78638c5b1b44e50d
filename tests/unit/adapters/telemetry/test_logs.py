"""The log: one line per remark whatever was said, private, small, and never in the engine's way."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from everstep.adapters.telemetry import logs
from everstep.adapters.telemetry.logs import LogSink, numbered
from everstep.domain.ids import StepPath, TaskId
from everstep.domain.values import JsonValue

TASK = TaskId("t_1")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines() if line]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "logs" / "everstep.log"


def test_nothing_is_made_before_the_first_line_and_then_for_the_owner_only(path: Path) -> None:
    sink = LogSink(path)
    assert not path.parent.exists()
    sink.note("task handed back", task=TASK, tools=["a"])
    sink.close()
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.parent.parent.stat().st_mode & 0o777 == 0o700
    (line,) = lines(path)
    assert line.pop("at").endswith("Z")
    assert line == {
        "level": "info",
        "message": "task handed back",
        "task": "t_1",
        "step": None,
        "attempt": None,
        "fields": {"tools": ["a"]},
    }


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines",
        "carriage\rreturn",
        "\x1b[31mred\x1b[0m",
        "bell\x07",
        "del\x7f",
        "bidi\u202e",
        "half\ud800",
        "ü\u2028",
    ],
)
def test_a_remark_is_one_line_of_printable_ascii(path: Path, text: str) -> None:
    sink = LogSink(path)
    sink.note(text, step=text, said=text)
    sink.close()
    raw = path.read_bytes()
    assert raw.count(b"\n") == 1
    assert all(0x20 <= byte < 0x7F for byte in raw.rstrip(b"\n"))
    (line,) = lines(path)
    assert (line["message"], line["fields"]["said"]) == (text, text)


def test_trouble_keeps_the_stack(path: Path) -> None:
    sink = LogSink(path)
    try:
        _boom()
    except ValueError as error:
        sink.trouble("a walk stopped", error, task=TASK)
    sink.close()
    (line,) = lines(path)
    assert (line["level"], line["task"]) == ("error", "t_1")
    assert line["fields"]["error"] == "ValueError: boom\nbang"
    assert "test_trouble_keeps_the_stack" in line["fields"]["stack"]


def _boom() -> None:
    raise ValueError("boom\nbang")


@pytest.mark.parametrize(
    ("least", "kept"),
    [("debug", "dbg info warn err"), ("info", "info warn err"), ("warning", "warn err"), ("error", "err")],
)
def test_less_important_lines_are_left_out(path: Path, least: str, kept: str) -> None:
    sink = LogSink(path, level=least)
    sink.note("dbg", level="debug")
    sink.note("info")
    sink.note("warn", level="warning")
    sink.trouble("err", ValueError("x"))
    sink.close()
    assert [line["message"] for line in lines(path)] == kept.split()


def test_an_unknown_level_is_an_ordinary_line(path: Path) -> None:
    sink = LogSink(path)
    sink.note("said", level="shout")
    sink.close()
    assert lines(path)[0]["level"] == "info"


def test_what_is_too_long_or_no_json_is_cut(path: Path) -> None:
    sink = LogSink(path)
    endless: list[JsonValue] = []
    endless.append(endless)
    sink.note("x" * 100_000, big="y" * 100_000)
    sink.note("many", many=["z" * 1000] * 200)
    sink.note("endless", value=endless)
    sink.note("odd", value={1, 2})  # type: ignore[arg-type]  # tools may say anything
    sink.close()
    long, many, circle, odd = lines(path)
    assert len(long["message"]) == logs.TEXT_CHARS_MAX + 1
    assert len(long["fields"]["big"]) == logs.TEXT_CHARS_MAX + 1
    assert many["fields"]["cut"].endswith(" bytes")
    assert "Circular" in circle["fields"]["unreadable"]
    assert odd["fields"]["value"] == "{1, 2}"
    assert all(len(line) <= logs.LINE_BYTES_MAX for line in path.read_bytes().splitlines())


def test_the_log_is_five_files_of_bounded_size(path: Path) -> None:
    sink = LogSink(path, bytes_max=2000)
    for number in range(200):
        sink.note(f"line {number:03d}")
    sink.close()
    files = sorted(path.parent.iterdir())
    assert files == [numbered(path, age) for age in range(logs.FILES)]
    assert all(file.stat().st_size <= 2000 and file.stat().st_mode & 0o777 == 0o600 for file in files)
    kept = [line["message"] for file in reversed(files) for line in lines(file)]
    assert kept == [f"line {number:03d}" for number in range(200 - len(kept), 200)]


def test_engines_of_one_folder_share_its_log(path: Path) -> None:
    """Whoever comes second to a full file finds it shifted, and shifts nothing."""
    sinks = [LogSink(path, bytes_max=2000) for _ in range(4)]
    for number in range(200):
        sinks[number % 4].note(f"line {number:03d}")
    for sink in sinks:
        sink.close()
    files = sorted(path.parent.iterdir())
    assert files == [numbered(path, age) for age in range(logs.FILES)]
    assert all(1000 <= file.stat().st_size <= 2500 for file in files[1:])
    kept = sorted(line["message"] for file in files for line in lines(file))
    assert kept == [f"line {number:03d}" for number in range(200 - len(kept), 200)]


def test_a_log_of_an_earlier_process_is_carried_on(path: Path) -> None:
    for text in ("first", "second"):
        sink = LogSink(path, bytes_max=250)
        sink.note(text)
        sink.close()
    sink = LogSink(path, bytes_max=250)
    sink.note("third")
    sink.note("fourth")
    assert [line["message"] for line in lines(numbered(path, 1))][-1] == "third"
    sink.close()


def test_a_full_disk_costs_lines_but_never_raises(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = LogSink(path)
    sink.note("before")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: 5)
        sink.note("lost 1")
        patch.setattr(os, "write", _refuse)
        sink.note("lost 2")
    sink.note("after")
    sink.close()
    assert [line["message"] for line in lines(path)] == [
        "before",
        "2 lines were lost: the log could not be written",
        "after",
    ]


def _refuse(descriptor: int, data: bytes) -> int:
    raise OSError(28, "no space left")


def test_a_folder_that_cannot_be_made_never_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    sink = LogSink(tmp_path / "file" / "everstep.log")
    sink.note("nobody reads this")
    sink.trouble("nor this", ValueError("x"))


def test_many_threads_write_whole_lines(path: Path) -> None:
    sink = LogSink(path, bytes_max=10_000_000)

    def speak(name: str) -> None:
        for number in range(200):
            sink.note(f"{name} {number}", pad="x" * 300)

    threads = [threading.Thread(target=speak, args=(f"t{at}",)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sink.close()
    said = [line["message"] for line in lines(path)]
    assert sorted(said) == sorted(f"t{at} {number}" for at in range(8) for number in range(200))


class Heard(list[object]):
    """A listener that keeps what it hears."""

    def progress(self, *said: object) -> None:
        self.append(said)

    def output(self, *said: object) -> None:
        self.append(said)


def test_what_calls_say_reaches_who_listens_and_nobody_else(path: Path) -> None:
    sink, heard = LogSink(path), Heard()
    sink.progress(TASK, StepPath("a"), 0.1, None)
    leave = sink.listen(heard)
    sink.progress(TASK, StepPath("a"), 0.5, "half")
    sink.output(TASK, StepPath("a"), 1, "Solar ")
    leave()
    leave()
    sink.progress(TASK, StepPath("a"), 0.9, None)
    sink.output(TASK, StepPath("a"), 1, "storage")
    assert heard == [("t_1", "a", 0.5, "half"), ("t_1", "a", 1, "Solar ")]
    assert not path.exists()


def test_listeners_are_bounded(path: Path) -> None:
    sink = LogSink(path)
    every = [Heard() for _ in range(logs.LISTENERS_MAX + 5)]
    for heard in every:
        sink.listen(heard)
    sink.progress(TASK, StepPath("a"), 0.5, None)
    assert [len(heard) for heard in every] == [1] * logs.LISTENERS_MAX + [0] * 5
