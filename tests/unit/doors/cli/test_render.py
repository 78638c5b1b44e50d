"""Lines as people see them."""

import pytest

from everstep.doors.cli.render import (
    FOOTER_LINES,
    event_text,
    flat,
    footer,
    header,
    issue_lines,
    last_line,
    output_lines,
    plain_line,
    progress_line,
    restored,
    step_line,
    table,
)
from everstep.doors.cli.view import TaskView
from everstep.doors.cli.words import instant
from tests.unit.doors.cli.stories import PAUSE, Story, error, task


def seen(*frames: dict[str, object], **more: object) -> TaskView:
    view = TaskView.of(task(**more))
    for frame in frames:
        view.absorb(frame)
    return view


def test_the_header_names_title_and_short_id() -> None:
    assert flat(header(seen())) == "Research brief   t_7k2m9qx4"


def test_each_ended_step_is_one_line() -> None:
    story = Story()
    view = seen(story.attempt("hits"), story.completed("hits", [], "6 results"))
    view.absorb(story.failed("pages", "it did not answer"))
    view.absorb(story.event("step.skipped", "send", reason="upstream", upstream="pages"))
    lines = [flat(step_line(step, 12, 80)) for step in view.steps.values()]
    assert lines == [
        " ok Search          1.0s  6 results",
        " !! Read 6 pages    4.0s  it did not answer",
        " -- Send                  needs pages, which has no result",
    ]


def test_a_retry_says_which_and_when() -> None:
    story = Story()
    view = seen(story.attempt("hits"))
    retry = {"count": 1, "max": 3, "next_at": "2026-11-15T18:02:13.000Z"}
    view.absorb(story.event("step.retry_scheduled", "hits", attempt=1, error=error(), retry=retry))
    now = instant("2026-11-15T18:02:09.000Z")
    assert "try 2 of 4 in 4 s: the server is down" in flat(step_line(view.steps["hits"], 10, 80, now))


def test_the_footer_is_short_whatever_is_under_way() -> None:
    story = Story()
    steps = [{"id": f"s{n}", "title": f"Step {n}", "status": "pending"} for n in range(20)]
    view = seen(*(story.attempt(f"s{n}") for n in range(20)), steps=steps, status="running")
    lines = [flat(line) for line in footer(view, 0.0, 0.0, 80)]
    assert len(lines) <= FOOTER_LINES
    assert "and 18 more" in lines[-2]
    assert all(len(line) < 80 for line in lines)


@pytest.mark.parametrize(("fraction", "bar"), [(0.0, "----------"), (0.55, "=====-----"), (0.999, "=========-")])
def test_the_bar_is_full_only_at_the_end(fraction: float, bar: str) -> None:
    view = seen(status="running")
    view.fraction = fraction
    assert bar in flat(progress_line(view, 64.0, 80))
    view.status = "completed"
    assert "==========" in flat(progress_line(view, 64.0, 80))


def test_the_progress_line_says_what_it_waits_for() -> None:
    story = Story()
    view = seen(story.paused())
    assert "waiting for you" in flat(progress_line(view, 1.0, 80))
    assert flat(progress_line(view, 64.2, 80)).endswith("1m04s")
    view.pauses.clear()
    view.estimate = {"p10": 1.1, "p50": 2.0, "p90": 4.2}
    view.status = "running"
    assert "about 2 s (1-4)" in flat(progress_line(view, 1.0, 80))


def test_what_was_restored_is_named() -> None:
    steps = [
        {"id": "hits", "status": "completed"},
        {"id": "pages", "status": "running", "effect": "pure"},
        {"id": "send", "status": "running", "effect": "once"},
    ]
    lines = [flat(line) for line in restored(seen(steps=steps, status="stalled"))]
    assert lines == [
        " == 1 step of 3 restored from the journal: hits",
        " == pages was interrupted: called again, which is harmless",
        " == send was interrupted: nobody knows whether it happened",
    ]


def test_nothing_restored_is_said_too() -> None:
    assert "no step had ended yet" in flat(restored(seen())[0])


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"status": "completed"}, "completed"),
        ({"status": "completed", "outcome": "partial", "issues": [{"step": "a"}]}, "completed with 1 issue"),
        ({"status": "failed", "error": error()}, "failed: the server is down   [http_503]"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "running"}, "running   0 of 3 steps ended"),
    ],
)
def test_the_last_line(more: dict[str, object], text: str) -> None:
    assert flat(last_line(seen(**more))) == text


def test_issues_and_outputs() -> None:
    issues = [
        {"step": "a", "status": "failed", "reason": "error", "error": error()},
        {"step": "b", "status": "skipped", "reason": "condition", "error": None},
    ]
    assert [flat(line) for line in issue_lines(seen(issues=issues))] == [
        "  - a failed: the server is down",
        "  - b skipped: its condition is false",
    ]
    assert output_lines({"name": "Ana", "n": 3, "list": [1, {"a": None}]}) == [
        "name: Ana",
        "n: 3",
        'list: [1,{"a":null}]',
    ]
    assert output_lines(None) == []


def test_one_line_per_event() -> None:
    frame = Story().completed("hits", [], "6 results")
    assert plain_line(frame["event"]) == "2026-11-15T18:02:02Z t_7k2m9qx4 step.completed hits 0.4s 6 results"


EVENTS = [
    ("task.created", None, {"title": "Brief"}, "Brief"),
    ("task.started", None, {"from": "queued", "epoch": 2}, "from queued, epoch 2"),
    (
        "task.recovered",
        None,
        {"reason": "worker_dead", "steps": [{"step": "a", "decision": "ask"}]},
        "worker_dead a: ask",
    ),
    ("task.pausing", None, {"waits_for": ["a", "b"]}, "after a and b"),
    ("task.pausing", None, {"waits_for": []}, ""),
    ("task.paused", None, {"type": "toolError"}, "toolError"),
    ("task.resumed", None, {"to": "queued"}, "to queued"),
    ("task.cancelled", None, {"reason": "requested"}, "requested"),
    ("task.completed", None, {"outcome": "success", "duration_s": 1.0}, "success in 1.0s"),
    ("step.started", "a", {"title": "Read"}, "Read"),
    (
        "step.waiting",
        "a",
        {"waiting_on": {"kind": "event", "detail": "paid", "ref": "k"}},
        "waits for event paid with key k",
    ),
    ("step.waiting", "a", {"waiting_on": {"kind": "slot", "detail": "shell"}}, "waits for a slot of shell"),
    ("step.skipped", "a", {"reason": "upstream", "upstream": "b"}, "upstream b"),
    ("step.skipped", "a", {"reason": "condition"}, "condition"),
    ("attempt.started", "a", {"tool": "x.y", "attempt": 2}, "x.y attempt 2"),
    ("attempt.probed", "a", {"result": "done"}, "done"),
    ("attempt.failed", "a", {"error": error()}, "the server is down [http_503]"),
    ("pause.answered", "a", {"pause": PAUSE, "answer": "skip"}, f"{PAUSE} skip by ana"),
    ("pause.withdrawn", "a", {"pause": PAUSE, "why": "cancelled"}, f"{PAUSE} cancelled"),
    ("something.new", "a", {"id": "x"}, "id x"),
]


@pytest.mark.parametrize(("type", "step", "data", "text"), EVENTS)
def test_every_event_has_its_words(type: str, step: str | None, data: dict[str, object], text: str) -> None:
    assert event_text(Story().event(type, step, **data)["event"]) == text


def test_a_table_is_as_wide_as_its_widest_cells() -> None:
    assert table([("a", "bbb"), ("cc", "d")]) == ["a   bbb", "cc  d"]
    assert table([]) == []
