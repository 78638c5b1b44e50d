"""A followed task is the fold of its frames."""

from everstep.doors.cli.view import TaskView
from tests.unit.doors.cli.stories import PAUSE, Story, pause, task


def test_steps_move_with_their_events() -> None:
    view, story = TaskView.of(task()), Story()
    view.absorb(story.event("task.started", **{"from": "queued"}))
    view.absorb(story.attempt("hits"))
    assert (view.status, view.steps["hits"].status, view.steps["hits"].phase) == ("running", "running", "executing")
    view.absorb(story.completed("hits", [1, 2], "2 results"))
    hits = view.steps["hits"]
    assert (hits.status, hits.summary, hits.duration_s, view.last_step, view.done) == (
        "completed",
        "2 results",
        1.0,
        "hits",
        1,
    )


def test_an_output_without_a_summary_is_glanced_at() -> None:
    view, story = TaskView.of(task()), Story()
    view.absorb(story.completed("hits", {"path": "a.txt", "rows": [1, 2, 3], "text": "x" * 500}))
    assert view.steps["hits"].summary == "path a.txt, 3 rows"


def test_frames_that_came_before_are_ignored() -> None:
    view, story = TaskView.of(task(seq=9)), Story()
    view.absorb(story.completed("hits", 1))
    assert view.done == 0
    assert view.seq == 9


def test_items_count_in_their_step() -> None:
    view, story = TaskView.of(task()), Story()
    view.absorb(story.event("step.started", "pages", title="Read 3 pages", items={"value": ["a", "b", "c"]}))
    view.absorb(story.attempt("pages[0]"))
    view.absorb(story.completed("pages[0]", "x"))
    view.absorb(story.failed("pages[1]"))
    pages = view.steps["pages"]
    assert (pages.title, pages.items, pages.items_done, pages.items_failed) == ("Read 3 pages", 3, 2, 1)
    assert set(view.steps) == {"hits", "pages", "send"}


def test_pauses_open_and_close() -> None:
    view, story = TaskView.of(task()), Story()
    view.absorb(story.paused())
    view.absorb(story.event("task.paused", pause=PAUSE, type="uncertainOutcome"))
    assert (view.status, view.steps["send"].status, list(view.pauses)) == ("paused", "paused", [PAUSE])
    view.absorb(story.event("pause.answered", "send", pause=PAUSE, answer="not_happened"))
    view.absorb(story.event("task.resumed", pause=PAUSE, to="queued"))
    assert (view.status, view.steps["send"].status, view.pauses) == ("queued", "running", {})


def test_a_snapshot_brings_its_pause() -> None:
    view = TaskView.of(task(status="paused", pause=pause("inputRequired", question="Which?", schema=None)))
    assert list(view.pauses) == [PAUSE]


def test_the_end_settles_what_is_left() -> None:
    view, story = TaskView.of(task()), Story()
    view.absorb(story.failed("hits"))
    view.absorb(story.event("task.failed", error={"code": "x"}, skipped=["pages", "send"], duration_s=3.0))
    assert view.terminal
    assert [step.status for step in view.steps.values()] == ["failed", "skipped", "skipped"]
    assert view.steps["pages"].skip == "task_failed"


def test_completion_brings_outputs_and_issues() -> None:
    view, story = TaskView.of(task()), Story()
    issues = [{"step": "send", "status": "failed", "reason": "error", "error": None}]
    view.absorb(
        story.event("task.completed", outcome="partial", outputs={"value": {"n": 1}}, issues=issues, duration_s=2.0)
    )
    assert (view.status, view.outcome, view.outputs, view.issues) == ("completed", "partial", {"n": 1}, issues)


def test_recovery_says_what_becomes_of_each_call() -> None:
    view, story = TaskView.of(task()), Story()
    view.absorb(story.attempt("hits"))
    view.absorb(story.event("task.recovered", steps=[{"step": "hits", "decision": "call_again"}]))
    assert (view.status, view.steps["hits"].note) == ("stalled", "interrupted, called again")


def test_ticks_never_go_back_and_unknown_things_change_nothing() -> None:
    view, story = TaskView.of(task()), Story()
    view.absorb(story.attempt("hits"))
    view.absorb({"type": "tick", "progress": {"fraction": 0.5}, "steps": [{"id": "hits", "note": "half\x1b[2J"}]})
    view.absorb({"type": "tick", "progress": {"fraction": 0.2}, "steps": []})
    view.absorb({"type": "heartbeat"})
    view.absorb(story.event("something.new", "hits", surprise=True))
    assert view.fraction == 0.5
    assert view.steps["hits"].note == "half\\u001b[2J"
    assert view.seq == 3


def test_text_from_plans_cannot_steer_the_terminal() -> None:
    view = TaskView.of(task(title="\x1b]0;owned\x07 brief"))
    assert "\x1b" not in view.title
