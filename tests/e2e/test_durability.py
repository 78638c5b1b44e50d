"""What survives: real processes, real kills, a real file (acceptance, section 2)."""

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import World, kill, until


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    here = World(tmp_path)
    yield here
    here.close()


def mark(id: str, **keys: object) -> dict[str, object]:
    return {"id": id, "tool": "carrier.mark", "with": {"label": id}, **keys}


def query(world: World, sql: str) -> list[tuple[object, ...]]:
    """Plain SQL with the system's own SQLite: the file stays readable by anybody."""
    connection = sqlite3.connect(f"file:{world.store}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@pytest.mark.req("WF-1")
def test_the_intent_is_flushed_before_the_tool_acts(world: World) -> None:
    assert shutil.which("strace"), "this test traces system calls: apt-get install strace"
    world.write_plan([mark("a"), mark("b")])
    trace = world.folder / "trace"
    calls = "trace=write,pwrite64,fsync,fdatasync"
    process = world.carrier("start", before=["strace", "-f", "-y", "-s", "65536", "-e", calls, "-o", str(trace)])
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    happened = [word for line in trace.read_text(errors="replace").splitlines() if (word := _word(line))]
    told = " ".join(happened)
    assert re.search(r"intent:a (?:\w+:\w+ |flush )*?flush (?:flush )*mark:a", told), told
    assert re.search(r"outcome:a (?:\w+:\w+ |flush )*?flush (?:flush )*mark:b", told), told


def _word(line: str) -> str | None:
    """One system call as this test sees it: an intent or outcome on its way to the log, a flush, a mark."""
    if "fdatasync" in line or "fsync" in line:
        return "flush" if "-wal" in line else None
    if "marks>" in line:
        return f"mark:{line.partition(chr(34))[2][0]}"
    if "-wal>" not in line:
        return None
    found = [
        f"{word}:{step}"
        for word, event in (("outcome", "step.completed"), ("intent", "attempt.started"))
        for step in re.findall(rf'type\\?":\\?"{re.escape(event)}\\?",\\?"step\\?":\\?"(\w)', line)
    ]
    return " ".join(found) or None


@pytest.mark.req("WF-1", "WF-2")
def test_killed_right_after_the_tool_ran_the_intent_is_there(world: World) -> None:
    world.write_plan([mark("a")])
    process = world.carrier("start", EVERSTEP_FAILPOINTS="call.execute.after:1=sigkill")
    process.communicate()
    assert process.returncode == -9
    assert world.marks() == ["a 1"]
    assert query(world, "SELECT type FROM events ORDER BY id DESC LIMIT 1") == [("attempt.started",)]
    after = world.carrier("carry")
    assert until(after, "t_")[-1].endswith("completed None")
    after.communicate()
    assert world.marks() == ["a 1", "a 2"]


@pytest.mark.req("WF-6", "WF-9", "WF-17", "DoD.8")
def test_every_step_and_move_is_there_after_a_restart_in_a_new_process(world: World) -> None:
    world.write_plan([mark(letter) for letter in "abcdefg"])
    first = world.carrier("start", EVERSTEP_FAILPOINTS="outcome.commit.after:4=sigkill")
    first.communicate()
    second = world.carrier("carry")
    until(second, "t_")
    second.communicate()
    steps = query(world, "SELECT step_id, status, result, retry_count FROM task_executions ORDER BY step_number")
    assert steps == [(letter, "completed", f'{{"label":"{letter}"}}', 0) for letter in "abcdefg"]
    seqs = [seq for (seq,) in query(world, "SELECT seq FROM events ORDER BY id")]
    assert seqs == list(range(1, len(seqs) + 1))
    moves = query(world, "SELECT count(*) FROM events WHERE type IN ('attempt.started', 'step.completed')")
    assert isinstance(moves[0][0], int)
    assert moves[0][0] >= 14


@pytest.mark.req("WF-7", "WF-16")
def test_a_dead_engines_task_is_found_at_the_next_start_and_never_left_running(world: World) -> None:
    world.write_plan([{"id": "a", "tool": "carrier.hold", "with": {"label": "held"}}])
    first = world.carrier("start")
    until(first, "started")
    world.until_marked(1)
    kill(first)
    assert query(world, "SELECT status FROM tasks") == [("running",)]
    second = world.carrier("carry", EVERSTEP_FAILPOINTS="gate.scan.after:1=sigkill")
    second.communicate()
    assert query(world, "SELECT status, worker FROM tasks") == [("stalled", None)]
    (recovered,) = query(
        world,
        "SELECT body ->> '$.actor.kind', body ->> '$.data.from', body ->> '$.data.reason', "
        "body ->> '$.data.last_heartbeat_at' IS NOT NULL, body ->> '$.data.threshold_s' "
        "FROM events WHERE type = 'task.recovered'",
    )
    assert recovered == ("system", "running", "worker_dead", 1, 30.0)
    third = world.carrier("carry", EVERSTEP_FAILPOINTS="gate.scan.after:1=sigkill")
    third.communicate()
    assert query(world, "SELECT count(*) FROM events WHERE type = 'task.recovered'") == [(1,)]


@pytest.mark.req("WF-27", "TR.3", "X.6")
def test_a_task_that_kills_its_engine_is_stopped_and_the_others_complete(world: World) -> None:
    world.write_plan([{"id": "a", "tool": "carrier.die", "with": {"label": "died"}}])
    world.carrier("start").communicate()
    world.write_plan([mark("fine")], name="innocent")
    codes: list[int] = []
    while 0 not in codes and len(codes) < 8:
        process = world.carrier("start", count=4)
        process.communicate()
        codes.append(process.returncode)
    assert codes[-1] == 0, codes
    ended = query(world, "SELECT status, error_code, count(*) FROM tasks GROUP BY 1, 2 ORDER BY 1")
    assert ended == [("completed", None, 4), ("failed", "recovery_exhausted", 1)]
    assert world.marks().count("died") == 6


@pytest.mark.req("WF-27")
def test_a_task_that_makes_progress_may_be_recovered_any_number_of_times(world: World) -> None:
    steps = [{"id": f"s{n}", "tool": "carrier.die_first", "with": {"label": f"s{n}"}} for n in range(7)]
    world.write_plan(steps)
    deaths = 0
    while True:
        process = world.carrier("start")
        process.communicate()
        if process.returncode == 0:
            break
        deaths += 1
    assert deaths == 7
    assert query(world, "SELECT status FROM tasks") == [("completed",)]
    assert world.marks() == [f"s{n} {attempt}" for n in range(7) for attempt in (1, 2)]


@pytest.mark.req("WF-24")
def test_who_changed_what_can_be_asked_of_the_store(world: World) -> None:
    world.write_plan([mark("a")])
    world.carrier("start").communicate()
    done = subprocess.run(
        [sys.executable, "-m", "everstep", "--store", str(world.store), "--json", "db", "audit", "@last"],
        capture_output=True,
        text=True,
        check=True,
    )
    changes = json.loads(done.stdout)["items"]
    assert [(change["from"], change["to"], change["actor"]["kind"]) for change in changes] == [
        (None, "queued", "human"),
        ("queued", "running", "system"),
        ("pending", "running", "system"),
        ("running", "completed", "system"),
        ("running", "completed", "system"),
    ]


@pytest.mark.req("WF-17")
def test_what_went_in_and_came_out_of_a_step_can_be_read_and_large_values_are_kept_once(tmp_path: Path) -> None:
    large = "x" * 40_000
    join: dict[str, object] = {"tool": "text.join", "with": {"texts": [large]}}
    pick: dict[str, object] = {"tool": "json.pick", "with": {"value": {}, "pointer": "/a"}, "on_error": "continue"}
    steps = [{"id": "a", **join}, {"id": "b", **join}, {"id": "bad", **pick}]
    (tmp_path / "p.plan.json").write_text(json.dumps({"name": "p", "steps": steps}), encoding="utf-8")
    everstep(tmp_path, "run", "p.plan.json")
    first, second, bad = (json.loads(everstep(tmp_path, "--json", "show", "@last", step)) for step in ("a", "b", "bad"))
    assert first["output"]["artifact"] == second["output"]["artifact"]
    assert first["output"]["bytes"] > len(large)
    assert len(first["output"]["preview"]) <= 2048
    assert first["input"]["artifact"].startswith("sha256:")
    assert (bad["status"], bad["input"]["value"]) == ("failed", {"value": {}, "pointer": "/a"})
    assert bad["error"]["message"]
    kept = [path for path in (tmp_path / ".everstep" / "artifacts").rglob("*") if path.is_file()]
    assert len(kept) == 3, "one input and one output, shared by two steps, and the plan"


def everstep(folder: Path, *words: str) -> str:
    """A command in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "everstep", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout
