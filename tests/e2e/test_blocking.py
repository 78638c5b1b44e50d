"""The blocking face on a real store: the same names without `await`, anywhere, Ctrl-C included."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import everstep
from everstep import Plan, Result, blocking, tool
from everstep.errors import EngineClosed, NotFound
from everstep.ports.tool import Ctx, Misconfigured, NeedsInput, Uncertain

ROOT = Path(__file__).resolve().parents[2]


@tool("test.shout", effect="pure")
def shout(text: str) -> dict[str, str]:
    """Say it loudly."""
    return {"text": text.upper(), "thread": threading.current_thread().name}


@tool("test.asked", effect="pure")
async def asked(ctx: Ctx) -> dict[str, Any]:
    """Ask before answering."""
    if ctx.answer is None:
        raise NeedsInput("To whom?", {"type": "string"})
    return {"to": ctx.answer}


def shouting(text: str = "hi") -> Plan:
    plan = Plan("shouting")
    said = plan.step("a", shout, {"text": text})
    plan.output(said=said.text)
    return plan


def asking() -> Plan:
    plan = Plan("asking")
    to = plan.step("a", asked, {})
    plan.output(to=to.to)
    return plan


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "work.db"


# --- run ---


def test_run_carries_a_plan_to_its_end(store: Path) -> None:
    result = everstep.run(shouting(), store=store)
    assert isinstance(result, Result)
    assert (result.status, result.outputs) == ("completed", {"said": "HI"})
    assert result.raise_for_status() is result
    assert everstep.run(shouting(), store=store, key="again").task_id != result.task_id


def test_run_uses_the_projects_store_by_itself(store: Path) -> None:
    assert everstep.run(shouting()).status == "completed"
    assert (store.parent / ".everstep" / "everstep.db").exists()


def test_run_says_where_to_answer_unless_its_caller_looks_itself(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = everstep.run(asking(), store=store)
    with blocking.Engine(store, tools=[asked]) as engine:
        (pause,) = engine.inbox(first.task_id)
    said = capsys.readouterr().err
    assert "To whom?" in said
    assert f"everstep inbox {pause.id}" in said
    everstep.run(asking(), store=store, on_pause="return")
    assert capsys.readouterr().err == ""


def test_run_goes_on_with_what_it_left_unless_it_is_to_begin_anew(store: Path) -> None:
    first = everstep.run(asking(), store=store)
    assert (first.status, first.outputs) == ("paused", None)
    assert everstep.run(asking(), store=store).task_id == first.task_id
    assert everstep.run(asking(), store=store, new=True).task_id != first.task_id
    with blocking.Engine(store, tools=[asked]) as engine:
        engine.get(first.task_id).pauses[0].answer("ana")
        assert engine.get(first.task_id).result().outputs == {"to": "ana"}


async def test_run_works_inside_a_running_loop_and_says_what_it_does(
    store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "everstep")
    assert everstep.run(shouting(), store=store).status == "completed"
    assert "await Engine().run(plan)" in caplog.text
    assert asyncio.get_running_loop().is_running()


def test_run_leaves_no_thread_behind(store: Path) -> None:
    before = {*threading.enumerate()}
    everstep.run(asking(), store=store)
    assert [thread.name for thread in threading.enumerate() if thread not in before] == []


class Terminal:
    """Somebody who types."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
        self.lines = [*lines]
        monkeypatch.setattr(sys, "stdin", self)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.lines.pop(0)


def test_on_a_terminal_run_asks(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(monkeypatch, "approve\n", "answer nonsense\n", "answer 3\n", 'answer "ana"\n')
    result = everstep.run(asking(), store=store)
    assert (result.status, result.outputs) == ("completed", {"to": "ana"})
    said = capsys.readouterr().err
    assert "To whom?" in said
    assert "'approve' is no answer here" in said
    assert "does not fit" in said
    assert terminal.lines == []


def test_on_a_terminal_a_question_can_be_left_waiting(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Terminal(monkeypatch, "\n")
    assert everstep.run(asking(), store=store).status == "paused"


# --- Engine, Task, Pause ---


def test_every_name_without_await(store: Path) -> None:
    with blocking.Engine(store, tools=[shout, asked]) as engine:
        assert engine.recovered == 0
        task = engine.start(shouting(), key="k", title="T", labels={"a": "b"}, priority=0)
        assert task.result().outputs == {"said": "HI"}
        assert (task.refresh().status, task.outcome, task.error) == ("completed", "success", None)
        assert task.outputs == {"said": "HI"}
        assert task.progress.fraction == 1.0
        assert list(task.steps) == ["a"]
        assert [event.seq for event in task.events()] == [event.seq for event in engine.events("k")]
        assert [one.id for one in engine.list(status="completed", plan="shouting")] == [task.id]
        assert repr(task) == f"<Task {task.id} completed 'T'>"
        assert engine.run(shouting("x")).outputs == {"said": "X"}


def test_a_pause_is_answered_in_every_way_there_is(store: Path) -> None:
    with blocking.Engine(store, tools=[asked]) as engine:
        ends = {"answer": "completed", "skip": "completed", "cancel": "cancelled"}
        for answer, status in ends.items():
            task = engine.get(engine.start(asking()).id)
            task.result(on_pause="return")
            (pause,) = engine.inbox(task.id)
            assert (pause.type, pause.step, pause.task) == ("inputRequired", "a", task.id)
            assert repr(pause).startswith("<Pause p_")
            first = task.refresh().pause_reason
            assert first is not None
            assert first.id == pause.id
            getattr(pause, answer)(*(["ana"] if answer == "answer" else []))
            assert task.refresh().result().status == status


@tool("test.broken", effect="once")
async def broken(how: str = "wrong") -> dict[str, str]:
    """Fail as told."""
    if how == "wrong":
        raise Misconfigured("no such host")
    if how == "lost":
        raise Uncertain("the line was cut")
    return {"how": how}


def breaking(arguments: dict[str, Any]) -> Plan:
    plan = Plan("breaking")
    plan.step("first", shout, {"text": "x"})
    plan.step("a", broken, arguments, on_error="pause")
    return plan


ANSWERS: list[tuple[dict[str, Any], str, list[Any], str]] = [
    ({}, "retry", [], "paused"),
    ({}, "retry_with", [{"how": "fine"}], "completed"),
    ({}, "supply_output", [{"how": "by hand"}], "completed"),
    ({}, "fail", [], "failed"),
    ({"how": "lost"}, "happened", [{"how": "it did"}], "completed"),
    ({"how": "lost"}, "not_happened", [], "paused"),
]


@pytest.mark.parametrize(("arguments", "answer", "given", "status"), ANSWERS, ids=[row[1] for row in ANSWERS])
def test_a_failed_call_is_answered(
    store: Path, arguments: dict[str, Any], answer: str, given: list[Any], status: str
) -> None:
    with blocking.Engine(store, tools=[shout, broken]) as engine:
        task = engine.get(engine.start(breaking(arguments)).id)
        task.result(on_pause="return")
        (pause,) = engine.inbox(task.id)
        assert answer in pause.answers
        getattr(pause, answer)(*given, note="because")
        assert task.refresh().result(on_pause="return").status == status


def test_missing_arguments_are_supplied_and_a_users_pause_is_lifted(store: Path) -> None:
    plan = Plan("missing")
    said = plan.step("a", shout, {"text": "x"})
    plan.step("b", shout, {"text": said.nothing})
    with blocking.Engine(store, tools=[shout]) as engine:
        task = engine.get(engine.start(plan).id)
        task.result(on_pause="return")
        (pause,) = engine.inbox(task.id)
        task.pause()
        pause.supply_arguments({"text": "y"})
        (beside,) = engine.inbox(task.id)
        beside.resume()
        assert task.refresh().result().status == "completed"


def test_a_task_is_paused_resumed_and_cancelled(store: Path) -> None:
    plan = Plan("nap")
    plan.step("a", "wait", {"for": "1h"})
    with blocking.Engine(store) as engine:
        task = engine.start(plan)
        assert task.pause(note="lunch").status in ("pausing", "paused")
        assert task.result(on_pause="return").status == "paused"
        assert task.refresh().resume().status in ("queued", "running")
        assert task.cancel(note="enough").result().status == "cancelled"


def test_an_engine_that_is_not_open_says_so(store: Path) -> None:
    engine = blocking.Engine(store)
    with pytest.raises(EngineClosed):
        engine.get("x")
    with pytest.raises(EngineClosed):
        engine.events("x")
    engine.close()
    with engine, pytest.raises(NotFound):
        engine.get("x")
    with engine:
        pass


def test_a_store_that_cannot_be_opened_leaves_no_thread(store: Path) -> None:
    store.mkdir()
    before = threading.active_count()
    with pytest.raises(everstep.EverstepError):
        blocking.Engine(store).open()
    assert threading.active_count() == before


def test_events_can_be_left_in_the_middle(store: Path) -> None:
    with blocking.Engine(store, tools=[shout]) as engine:
        task = engine.start(shouting())
        task.result()
        for event in engine.events(task.id):
            assert event.seq == 1
            break


def test_ctrl_c_ends_the_wait_and_the_task_is_safe(store: Path) -> None:
    code = (
        "import signal, sys, everstep, everstep.blocking\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # whoever runs us in the background ignores it
        "plan = everstep.Plan('nap')\n"
        "plan.step('a', 'wait', {'for': '1h'})\n"
        "with everstep.blocking.Engine(sys.argv[1]) as engine:\n"
        "    task = engine.start(plan, key='nap')\n"
        "    print(task.id, flush=True)\n"
        "    task.result()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(store)],
        cwd=store.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    task = process.stdout.readline().strip()
    process.send_signal(signal.SIGINT)
    try:
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert "KeyboardInterrupt" in said
    with blocking.Engine(store, worker=False) as engine:
        assert engine.get("nap").id == task
        assert engine.get("nap").status == "stalled"
        assert json.dumps(engine.get("nap").progress.done) == "0"
