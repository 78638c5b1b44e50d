"""The judge is judged first: good histories pass, and every check finds what it is there for."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from everstep.domain import states
from everstep.domain.pauses import FOR_PRODUCER
from everstep.torture import moves
from everstep.torture.checker import Bounds, check_canary, check_processes, main
from everstep.torture.history import Frame, Frozen, Said, read_effects, read_on
from everstep.torture.world import Appender
from tests.fault.histories import (
    TASK,
    W1,
    W2,
    Edit,
    History,
    approved,
    cancelled,
    crashed,
    recover,
    retried,
    reworked,
    row,
)


@pytest.mark.parametrize("make", [crashed, retried, cancelled, approved, reworked])
def test_a_good_history_passes(tmp_path: Path, make: type[History]) -> None:
    assert make().judged(tmp_path) == []


def found(history: History, folder: Path, bounds: Bounds | None = None) -> set[str]:
    return {violation.check for violation in history.judged(folder, bounds)}


def change(history: History, kind: str, nth: int = 1, **data: object) -> None:
    history.find(kind, nth).data.update(data)


def forget_the_end(history: History) -> None:
    """The last event was acknowledged, then lost."""
    history.drop("task.completed")
    history.row.update(status="running", worker=W2, ended_at=None, outcome=None)


def second_outcome(history: History) -> None:
    line = history.add("step.completed", "a", W2, attempt=1, via="probe")
    history.lines.remove(line)
    history.lines.insert(-1, line)
    line.seq, history.lines[-1].seq = history.lines[-1].seq, line.seq
    history.row["last_seq"] += 1
    history.streams = []


def stale_writer(history: History) -> None:
    history.find("step.completed", 2).by = W1


def two_processes(history: History) -> None:
    history.effects[1] = replace(history.effects[1], pid=33, incarnation="three")


def swap_places(history: History) -> None:
    history.lines[3], history.lines[4] = history.lines[4], history.lines[3]


def gap(history: History) -> None:
    for line in history.after("task.recovered"):
        line.seq += 1
    history.row["last_seq"] += 1
    history.streams = []


def start_while_paused(history: History) -> None:
    """The answer came, the resume did not."""
    history.drop("task.resumed")
    change(history, "task.started", 3, **{"from": "paused"})
    history.streams = []
    pausing = history.add("pause.opened", None, "ana", id="p_2", reason={"type": "userRequested"})
    history.lines.remove(pausing)
    history.lines.insert(history.lines.index(history.find("attempt.started", 3)), pausing)
    for seq, line in enumerate(history.lines, start=1):
        line.seq = seq
    history.row["last_seq"] = len(history.lines)
    history.pauses["p_2"] = "withdrawn"


def decide_by_itself(history: History) -> None:
    """The `once` step is called again, and no question was asked."""
    for kind in ("pause.opened", "task.paused", "pause.answered", "task.resumed", "task.started"):
        history.drop(kind, nth=3 if kind == "task.started" else 1)
    change(history, "attempt.started", 3, epoch=3)
    history.row["epoch"] = 3
    history.pauses = {}
    history.client = []
    history.streams = []


def act_twice(history: History) -> None:
    history.effects.append(replace(history.effects[2], at=1136))


def hang(history: History) -> None:
    forget_the_end(history)
    history.streams = []
    history.client = []


def one_more_row(history: History) -> None:
    history.more_rows.append({**history.row, "id": "t_two"})


ON_TIME = {"p10": 5.0, "p50": 6.0, "p90": 9.0, "basis": "history", "n": 40}


def schedule(history: History, *said: tuple[str, float]) -> None:
    """Say so before the end."""
    last = history.lines.pop()
    for kind, seconds in said:
        history.add(kind, None, W2, estimate=ON_TIME, p50=seconds, actual_s=seconds)
    history.lines.append(replace(last, seq=len(history.lines) + 1))
    history.row["last_seq"] = len(history.lines)
    history.streams = []


def after_the_end(history: History) -> None:
    history.add("task.late", None, W2, estimate=ON_TIME, p50=1.0)
    history.row["last_seq"] += 1
    history.streams = []


@pytest.mark.req("5.6")
def test_a_schedule_is_told_as_it_may_be(tmp_path: Path) -> None:
    history = crashed()
    schedule(history, ("task.ahead_of_schedule", 1.0), ("task.early_completion", 4.0))
    assert found(history, tmp_path) == set()


BROKEN: list[tuple[str, str, Edit]] = [
    ("C1", "an acknowledged result is lost", forget_the_end),
    ("C1", "an acknowledged task is unknown", lambda h: h.client.append(Said("ok", "start", "t_gone", "other"))),
    ("C1", "an acknowledged answer is unknown", lambda h: h.client.append(Said("ok", "answer", TASK, pause="p_7"))),
    ("C1", "other outputs were told", lambda h: h.client.append(replace(h.client[-1], outputs={"n": 2}))),
    ("C1", "published before durable", lambda h: h.streams.append(Frame(TASK, 18, "x", "s", durable=False))),
    ("C2", "two outcomes", second_outcome),
    ("C2", "an effect after the outcome", lambda h: h.acted("a", 1, 1100, "one")),
    ("C3", "an effect without an intent", lambda h: h.acted("b", 3, 1136, "two")),
    ("C3", "an effect before its intent was durable", lambda h: h.acted("a", 1, 1026, "one", intent=False)),
    ("C3", "an effect of a step nobody knows", lambda h: h.acted("z", 1, 1026, "one")),
    ("C3", "an effect under another key", lambda h: h.effects.append(replace(h.effects[0], key="other"))),
    ("C3", "an effect recorded as never called", lambda h: change(h, "attempt.abandoned", called=False)),
    ("C4", "a write by the old holder", stale_writer),
    ("C4", "an intent of an old epoch", lambda h: change(h, "attempt.started", 3, epoch=1)),
    ("C4", "recovery without a rise", lambda h: change(h, "task.recovered", epoch=1)),
    ("C4", "a claim without a rise", lambda h: change(h, "task.started", 2, epoch=2)),
    ("C4", "two processes in an epoch", two_processes),
    ("C5", "a move that is not in the table", lambda h: change(h, "task.resumed", to="stalled")),
    ("C5", "the row has another status", lambda h: h.row.update(status="running")),
    ("C5", "the row has another epoch", lambda h: h.row.update(epoch=3)),
    ("C5", "the row has another head", lambda h: h.row.update(last_seq=3)),
    ("C5", "terminal without an end", lambda h: h.row.update(ended_at=None)),
    ("C5", "a pause row that is still open", lambda h: h.pauses.update(p_1="open")),
    ("C5", "an attempt ends twice", lambda h: change(h, "attempt.abandoned", attempt=2)),
    ("C5", "an unknown status", lambda h: change(h, "task.resumed", to="asleep")),
    ("C5", "columns that tell another story", lambda h: h.column.update(type="task.updated")),
    ("C5", "late twice", lambda h: schedule(h, ("task.late", 1.0), ("task.late", 1.0))),
    ("C5", "early though it was late", lambda h: schedule(h, ("task.late", 1.0), ("task.early_completion", 4.0))),
    ("C5", "early though it took as long as told", lambda h: schedule(h, ("task.early_completion", 5.0))),
    ("C5", "late after the end", after_the_end),
    ("C6", "commit order against seq", swap_places),
    ("C6", "a gap", gap),
    ("C7", "a frame is missing", lambda h: h.streams.pop(3)),
    ("C7", "a frame comes late", lambda h: h.streams.append(h.streams.pop(3))),
    ("C7", "a frame says another type", lambda h: h.streams.append(Frame(TASK, 1, "task.started", "new"))),
    ("C8", "an attempt while a pause of the task is open", start_while_paused),
    ("C8", "cut off for a pause nobody asked for", lambda h: change(h, "attempt.abandoned", error={"code": "paused"})),
    ("C8", "an effect while paused", lambda h: h.acted("b", 1, 1095, "one")),
    ("C10", "a `once` step called again unasked", decide_by_itself),
    ("C10", "one attempt acts twice", act_twice),
    ("C10", "a new key after a crash", lambda h: change(h, "attempt.started", 3, idempotency_key="new")),
    ("C11", "two tasks for one key", one_more_row),
    ("C11", "one key answered with two tasks", lambda h: h.client.append(Said("ok", "start", "t_two", "k"))),
    ("C14", "nothing moves any more", hang),
]


@pytest.mark.parametrize(("check", "edit"), [(check, edit) for check, _, edit in BROKEN], ids=[b[1] for b in BROKEN])
def test_a_broken_history_is_found(tmp_path: Path, check: str, edit: Edit) -> None:
    history = crashed()
    edit(history)
    assert check in found(history, tmp_path)


UNAPPROVED: list[tuple[str, Edit]] = [
    ("no approval is named", lambda h: change(h, "attempt.started", approval=None)),
    ("nobody gave it", lambda h: change(h, "pause.answered", answer="skip")),
    ("of another call", lambda h: change(h, "attempt.started", input={"digest": "sha256:two"})),
    ("of another tool", lambda h: change(h, "attempt.started", tool="u")),
    ("of another version", lambda h: change(h, "attempt.started", tool_version="2")),
    ("an edit grants the edited call only", lambda h: change(h, "pause.answered", answer="edit", digest="sha256:two")),
    ("too late", lambda h: change(h, "pause.opened", expires_at="1970-01-01T00:00:01.000Z")),
    ("two effects of one grant", lambda h: change(h, "attempt.failed", effect_state="made")),
]


@pytest.mark.parametrize("edit", [edit for _, edit in UNAPPROVED], ids=[name for name, _ in UNAPPROVED])
def test_a_call_without_its_grant_is_found(tmp_path: Path, edit: Edit) -> None:
    history = approved()
    edit(history)
    assert "C9" in found(history, tmp_path)


def test_a_start_after_cancel_is_found_and_finally_is_not(tmp_path: Path) -> None:
    history = cancelled()
    history.lines[0].data["plan"]["finally"] = []
    history.lines[0].data["plan"]["steps"].append({"id": "tidy"})
    assert found(history, tmp_path) == {"C8"}


def test_an_effect_after_cancelled_is_found(tmp_path: Path) -> None:
    history = cancelled()
    history.acted("b", 1, 5000, "one")
    assert {"C3", "C8"} <= found(history, tmp_path)


@pytest.mark.parametrize(
    ("woken_at", "times", "expected"),
    [(1095, 1, set()), (1095, 2, {"C2", "C8"}), (1101, 1, {"C2", "C8"}), (899, 1, {"C2", "C8"})],
    ids=["on waking", "one deed for each time", "before it woke", "long after it woke"],
)
def test_who_was_about_to_act_when_it_was_frozen_is_excused_once(
    tmp_path: Path, woken_at: int, times: int, expected: set[str]
) -> None:
    history = crashed()
    history.frozen.append(Frozen(pid=11, until=woken_at))
    for _ in range(times):
        history.acted("a", 1, 1100, "one")
    assert found(history, tmp_path) == expected


def test_too_many_retries_are_found(tmp_path: Path) -> None:
    history = retried()
    history.lines[0].data["plan"]["steps"][0]["retry"] = {"times": 2}
    assert found(history, tmp_path) == {"C11"}


def of_category(category: str, calls: int) -> History:
    """A step that is called so often, each time failing in this way."""
    history = retried()
    for number in range(4, calls, -1):
        history.drop("attempt.failed", number)
        history.drop("attempt.started", number)
    for number in range(1, calls + 1):
        change(history, "attempt.failed", number, error={"category": category})
    change(history, "step.failed", attempt=calls)
    history.row["ended_at"] = history.lines[-1].at
    return history


@pytest.mark.parametrize(
    ("category", "calls"), [("transient", 4), ("permission", 2), ("resource", 3), ("configuration", 1), ("logic", 1)]
)
def test_each_category_has_its_own_bound(tmp_path: Path, category: str, calls: int) -> None:
    (tmp_path / "most").mkdir()
    assert found(of_category(category, calls), tmp_path / "most") == set()
    if calls < 4:
        assert found(of_category(category, calls + 1), tmp_path) == {"C11"}


def fallen_back(number: int = 1, tool: str = "other") -> History:
    """Four calls, then the fallback's own four."""
    history = retried()
    plan = history.lines[0].data["plan"]
    plan["steps"][0]["fallback"] = [{"tool": "other"}]
    ends = [history.lines.pop() for _ in range(2)][::-1]
    history.add("step.fallback", "a", tool_requested="first", tool_used=tool, reason="http_503", number=number)
    for attempt in range(5, 9):
        history.intent("a", attempt, 1, W1, effect="idempotent", idempotency_key=f"key-{attempt}")
        history.add("attempt.failed", "a", attempt=attempt, effect_state="none", called=True)
    for end in ends:
        history.add(end.type, end.step, **end.data)
    change(history, "step.failed", attempt=8)
    history.row.update(last_seq=len(history.lines), ended_at=history.lines[-1].at)
    return history


def test_a_fallback_begins_anew(tmp_path: Path) -> None:
    assert found(fallen_back(), tmp_path) == set()


def test_a_fallback_has_its_own_bound(tmp_path: Path) -> None:
    history = fallen_back()
    history.lines[0].data["plan"]["steps"][0]["fallback"][0]["retry"] = 2
    assert found(history, tmp_path) == {"C11"}


def test_a_fallback_that_nobody_planned_is_found(tmp_path: Path) -> None:
    assert found(fallen_back(tool="stranger"), tmp_path) == {"C5"}


def test_a_fallback_after_a_call_that_may_have_acted_is_found(tmp_path: Path) -> None:
    history = fallen_back()
    change(history, "attempt.failed", 4, effect_state="unknown")
    assert found(history, tmp_path) == {"C10"}


def test_a_retry_needs_a_new_key(tmp_path: Path) -> None:
    history = retried()
    change(history, "attempt.started", 2, idempotency_key="key-1")
    assert found(history, tmp_path) == {"C10"}


def test_what_was_made_is_never_called_again(tmp_path: Path) -> None:
    history = retried()
    change(history, "attempt.failed", 1, effect_state="made")
    assert found(history, tmp_path) == {"C10"}


def recovered(times: int) -> History:
    """A task that kills its worker again and again, and gives up after the last recovery."""
    history = History()
    history.add("task.created", by="ana", plan={"steps": [{"id": "a"}]}, key="k")
    for number in range(1, times + 1):
        source = "queued" if number == 1 else "stalled"
        epoch = 2 * number - 1
        history.add("task.started", **{"from": source}, worker=W1, epoch=epoch)
        if number > 1:
            history.add("attempt.abandoned", "a", W1, attempt=number - 1, effect_state="unknown", called=True)
        history.intent("a", number, epoch, W1, effect="pure")
        recover(history, epoch=epoch + 1, recoveries=number)
        if number == times:  # given up by whoever recovered it; before, by whoever claims it
            history.add("attempt.abandoned", "a", W2, attempt=number, effect_state="unknown", called=True)
    history.add("task.failed", by=W2, error={"code": "recovery_exhausted"}, skipped=["a"])
    last = {"status": "failed", "epoch": 2 * times, "recoveries": times, "done": 1, "outcome": None, "key": "k"}
    usual = {"id": TASK, "owner": "local", "generation": 1, "worker": None, "last_seq": len(history.lines)}
    history.row = {**usual, **last, "started_at": history.lines[1].at, "ended_at": history.lines[-1].at}
    return history


def test_recoveries_are_counted_and_bounded(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    assert recovered(6).judged(tmp_path / "good") == []
    assert found(recovered(7), tmp_path) == {"C11"}


def test_a_resync_sets_the_cursor(tmp_path: Path) -> None:
    history = crashed()
    history.streams = [Frame(TASK, 10, "resync_required"), *(replace(f, subscriber="") for f in history.streams[10:])]
    assert history.judged(tmp_path) == []


def test_a_question_is_not_unfinished_work(tmp_path: Path) -> None:
    history = crashed()
    del history.lines[history.lines.index(history.find("task.paused")) + 1 :]
    history.row.update(status="paused", epoch=3, ended_at=None, outcome=None, done=1, recoveries=1)
    history.row["last_seq"] = len(history.lines)
    history.pauses["p_1"] = "open"
    history.effects.pop()
    history.client, history.streams = [], []
    assert history.judged(tmp_path) == []


def test_the_tables_are_copies() -> None:
    """Editing one alone fails here."""
    assert {str(k): {str(v) for v in to} for k, to in states.TASK_MOVES.items()} == moves.TASK_MOVES
    assert {str(k): {str(v) for v in to} for k, to in states.STEP_MOVES.items()} == moves.STEP_MOVES
    assert {str(k): {str(v) for v in to} for k, to in states.ATTEMPT_MOVES.items()} == moves.ATTEMPT_MOVES
    assert states.TERMINAL == moves.TERMINAL
    assert {answer: {str(status) for status in states.PUT_BACK} for answer in FOR_PRODUCER} == moves.PUT_BACK


def test_a_living_process_is_found() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert [violation.check for violation in check_processes([child.pid])] == ["C12"]
    child.communicate(b"\n")
    assert not list(check_processes([child.pid]))


@pytest.mark.parametrize(
    "text",
    ["p%ss-wörd+1", "70257373", "cCVzcy13w7ZyZCsx", "xcCVzcy13w7ZyZCsx", "AHAlc3Mtd8O2cmQrMQ", "p%25ss-w%C3%B6rd%2B1"],
)
def test_a_secret_is_found_in_its_forms(tmp_path: Path, text: str) -> None:
    secret = "p%ss-wörd+1" if len(text) != 8 else "p%ss"
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "log").write_text(f"before {text} after", encoding="utf-8")
    assert [violation.check for violation in check_canary(tmp_path, secret)] == ["C13"]
    assert not list(check_canary(tmp_path, "another secret"))


def test_an_unfinished_line_says_nothing(tmp_path: Path) -> None:
    """A killed writer may leave half a line behind."""
    log = tmp_path / "effects.jsonl"
    line = {"task": TASK, "step": "a", "attempt": 1, "key": "k", "pid": 1, "incarnation": "one", "what": "start"}
    log.write_text(json.dumps({**line, "at": 5}) + "\n" + '{"task": "t_o', encoding="utf-8")
    assert [effect.at for effect in read_effects(log)] == [5]
    assert read_effects(tmp_path / "never.jsonl") == ()


@pytest.mark.parametrize("cut", [1, 30, -1, None])
def test_a_line_cut_short_by_a_kill_does_not_become_whole_by_the_next(tmp_path: Path, cut: int | None) -> None:
    """The last byte may be all that is missing: whoever looked in between was told that nothing was made."""
    log = tmp_path / "effects.jsonl"
    line = {"task": TASK, "step": "a", "attempt": 1, "key": "k", "pid": 1, "incarnation": "one", "what": "start"}
    log.write_text(json.dumps({**line, "at": 1})[:cut], encoding="utf-8")
    assert read_effects(log) == ()
    Appender(log).write(**line, at=2)
    assert [effect.at for effect in read_effects(log)] == [2]
    assert [effect.at for effect, _ in read_on(log, 0)] == [2]


def test_as_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = crashed()
    history.row["epoch"] = 9
    store = history.write(tmp_path / "store.db")
    assert main([str(store), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["violations"][0]["check"] == "C5"
    assert main([str(store), "--healed"]) == 1
    assert capsys.readouterr().out.startswith("C5 t_one 16: the row has epoch 9")
    assert main([str(tmp_path / "none.db")]) == 2


def test_it_stands_alone(tmp_path: Path) -> None:
    """With nothing installed and nothing of ours but its own files."""
    probe = "import sys, everstep.torture.checker; print([m for m in sys.modules if m.startswith('everstep.')])"
    source = Path(moves.__file__).parents[2]
    told = subprocess.run(
        [sys.executable, "-S", "-c", probe],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {name.split(".")[1] for name in json.loads(told.stdout.replace("'", '"'))} == {"torture"}


# --- what starts over or changes ---


def kept_step_again(history: History) -> None:
    change(history, "task.reopened", kept=[], superseded=["b"])


def kept_item_lost(history: History) -> None:
    change(history, "task.reopened", kept=["a"])


def revised_too_late(history: History) -> None:
    change(history, "plan.revised", diff=[{"op": "set", "id": "a", "step": {"id": "a"}}])


def generation_skipped(history: History) -> None:
    change(history, "task.reopened", generation=3)


def taken_back_twice(history: History) -> None:
    for _ in range(2):
        history.add("task.updated", by="ana", changes={"undone": {"by": TASK, "steps": {"a": "b"}}})
    history.row["last_seq"] += 2


def a_child_of_nobody(history: History) -> None:
    change(history, "step.started", 2)
    history.find("step.started", 2).type = "step.waiting"
    change(history, "step.waiting", waiting_on={"kind": "child", "detail": "t_nobody"})


@pytest.mark.parametrize(
    ("edit", "check"),
    [
        (kept_step_again, "C2"),
        (kept_item_lost, "C5"),
        (revised_too_late, "C5"),
        (generation_skipped, "C5"),
        (taken_back_twice, "C10"),
        (a_child_of_nobody, "C1"),
    ],
)
def test_what_starts_over_is_judged(tmp_path: Path, edit: Edit, check: str) -> None:
    history = reworked()
    edit(history)
    assert check in found(history, tmp_path)


def listed() -> History:
    """A step that goes over two items, and one that waits for a signal."""
    history = History()
    plan = {
        "name": "list",
        "steps": [{"id": "a", "for_each": "${inputs.x}"}, {"id": "b", "tool": "wait"}],
        "finally": [],
    }
    history.add("task.created", by="ana", plan=plan, key="k")
    history.add("task.started", **{"from": "queued"}, worker=W1, epoch=1)
    history.add("step.started", "a", items={"value": [1, 2]})
    for item in ("a[0]", "a[1]"):
        history.intent(item, 1, 1, W1, effect="pure")
        history.add("step.completed", item, attempt=1, via="tool")
    history.add("step.completed", "a", attempt=None, via="tool")
    history.intent("b", 1, 1, W1, effect="pure")
    history.add("step.waiting", "b", waiting_on={"kind": "event"})
    history.add("step.completed", "b", by="ana", attempt=1, via="signal")
    history.add("task.completed", outcome="success")
    history.row = row(history)
    return history


def test_a_list_ends_after_its_items(tmp_path: Path) -> None:
    assert found(listed(), tmp_path) == set()
    history = listed()
    place = history.lines.index(history.find("step.completed", 2))
    history.lines.insert(place + 2, history.lines.pop(place))
    for seq, line in enumerate(history.lines, start=1):
        line.seq, line.at = seq, 1000 + 10 * seq
    history.row = row(history)
    (tmp_path / "again").mkdir()
    assert "C5" in found(history, tmp_path / "again")


def test_nobody_hears_a_signal_without_waiting_for_one(tmp_path: Path) -> None:
    history = listed()
    history.drop("step.waiting")
    assert found(history, tmp_path) == {"C5"}
