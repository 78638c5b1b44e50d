"""Every reason to stand still, and every answer to it, on a desk and on a phone: the journal keeps who said what."""

import json
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import APIResponse, Browser, Page, Route, expect

from tests.browser.stage import Stage

WIDTHS = (1440, 320)
ECHO = {"id": "first", "tool": "stage.echo", "with": {"value": {"size": {}}}}
FAILS = {"id": "make", "tool": "stage.read", "with": {"url": "https://example.test/3"}, "on_error": "pause"}
LETTER = {"to": "ana@example.test", "subject": "s", "text": "t"}
PLANS: Mapping[str, dict[str, Any]] = {
    "unresolvableParams": {
        "steps": [ECHO, {"id": "send", "tool": "stage.send", "with": {**LETTER, "to": "${first.to}"}}],
    },
    "schemaMismatch": {"steps": [ECHO, {"id": "area", "tool": "stage.area", "with": {"size": "${first.size}"}}]},
    "toolError": {"steps": [FAILS]},
    "unresolvedDependency": {
        "steps": [FAILS, {"id": "use", "tool": "stage.echo", "with": {"value": "${make}"}}],
    },
    "approvalRequired": {
        "steps": [{"id": "send", "tool": "stage.send", "with": LETTER, "approve": {"title": "Go?", "edit": ["text"]}}],
    },
    "inputRequired": {"steps": [{"id": "ask", "tool": "ask", "with": {"question": "Which colour?"}}]},
    "limitReached": {"limits": {"calls": 1}, "steps": [ECHO, {**ECHO, "id": "second"}]},
    "uncertainOutcome": {"steps": [{"id": "post", "tool": "stage.post", "with": {"text": "x", "gate": "held"}}]},
}
ANSWERS: Mapping[str, tuple[str, ...]] = {
    "unresolvableParams": ("supply_arguments", "skip", "cancel"),
    "schemaMismatch": ("supply_arguments", "skip", "cancel"),
    "toolError": ("retry", "retry_with", "supply_output", "skip", "fail", "cancel"),
    "unresolvedDependency": ("run_producer", "supply_output", "skip", "cancel"),
    "approvalRequired": ("approve", "edit", "reject", "answer"),
    "inputRequired": ("answer", "skip", "cancel"),
    "limitReached": ("raise_limit", "cancel"),
    "uncertainOutcome": ("happened", "not_happened", "fail", "skip"),
}
SHOWN = {
    "unresolvableParams": "to",
    "schemaMismatch": "size",
    "toolError": "https://example.test/3 is gone",
    "unresolvedDependency": "which did not give it",
    "approvalRequired": "What will happen",
    "inputRequired": "Which colour?",
    "limitReached": "1 of 1",
    "uncertainOutcome": "was interrupted",
}
FILL: Mapping[tuple[str, str], Callable[[Page], None]] = {
    ("unresolvableParams", "supply_arguments"): lambda page: page.get_by_label("to", exact=True).fill(
        "bo@example.test"
    ),
    ("schemaMismatch", "supply_arguments"): lambda page: page.get_by_label("size").fill('{"width": 2, "height": 3}'),
    ("toolError", "retry_with"): lambda page: page.get_by_label("url").fill("https://example.test/4"),
    ("approvalRequired", "edit"): lambda page: page.get_by_label("text").fill("other words"),
    ("inputRequired", "answer"): lambda page: page.get_by_role("textbox", name="Answer").fill("blue"),
    ("limitReached", "raise_limit"): lambda page: page.get_by_label("New maximum").fill("5"),
}
SENT = {"message_id": "m", "to": "x"}
READ = {"url": "https://example.test/4", "title": "Four", "words": 4}
GIVEN = {"toolError": READ, "unresolvedDependency": READ, "approvalRequired": SENT, "uncertainOutcome": SENT}
OUTPUT = frozenset({"supply_output", "happened", "answer"})
"""Answers that give what the step would have given."""


def open_pauses(stage: Stage, kind: str, tasks: list[str]) -> list[dict[str, Any]]:
    """One pause of each task; what a plan alone does not reach is done here."""
    if kind == "unresolvedDependency":
        for task in tasks:
            pause = stage.until(task, "paused")["pause"]["id"]
            stage.api("POST", f"/v1/inbox/{pause}/answer", {"answer": "skip"})
            stage.heard(task, "pause.opened", 2)
    if kind == "uncertainOutcome":
        for task in tasks:
            stage.heard(task, "attempt.started")
        stage.kill()
        stage.serve()
    return [dict(stage.until(task, "paused")["pause"]) for task in tasks]


def give(page: Page, pause: dict[str, Any], kind: str, answer: str) -> None:
    """Choose an answer, say what it needs to be told, send it."""
    label = next(one["label"] for one in pause["answers"] if one["answer"] == answer)
    page.get_by_role("group", name="Answers").get_by_role("button", name=label).first.click()
    form = page.get_by_role("form")
    if (kind, answer) in FILL:
        FILL[kind, answer](page)
    elif answer in OUTPUT:
        box = page.get_by_role("textbox", name="Answer" if answer == "answer" else "Output")
        box.fill(json.dumps(GIVEN[kind]))
    if answer in ("reject", "fail", "cancel"):
        page.get_by_label("Note").fill("for the record")
    if form.count():
        form.get_by_role("button").last.click()


@pytest.mark.req("US.1")
@pytest.mark.parametrize("kind", PLANS)
def test_every_answer_to_every_pause(stage: Stage, browser: Browser, kind: str) -> None:
    answers = ANSWERS[kind] * len(WIDTHS)
    tasks = [stage.start({"name": kind.lower(), **PLANS[kind]}) for _ in answers]
    pauses = open_pauses(stage, kind, tasks)
    todo = iter(zip(answers, pauses, strict=True))
    for width in WIDTHS:
        with stage.page(browser, "/inbox", width=width) as page:
            for answer, pause in islice(todo, len(ANSWERS[kind])):
                assert tuple(one["answer"] for one in pause["answers"]) == ANSWERS[kind]
                page.locator(f".inbox-row[href$='{pause['id']}']").click()
                expect(page.get_by_role("article")).to_contain_text(SHOWN[kind])
                give(page, pause, kind, answer)
                expect(page.get_by_text("Answered by local (http)")).to_be_visible()
                row = page.locator(f".inbox-row[href$='{pause['id']}']")
                expect(row).to_contain_text("by local")  # it has left its place: no row moves while the next is clicked
                if width < 600:
                    page.locator(".item-head .back").click()
    for answer, task in zip(answers, tasks, strict=True):
        said = [event for event in stage.events(task) if event["type"] == "pause.answered"][-1]
        assert (said["actor"]["id"], said["data"]["answer"]) == ("local", answer)
        if answer in ("reject", "fail", "cancel"):
            assert said["data"]["note"] == "for the record"
        if answer == "edit":
            assert "other words" in str(said["data"]["diff"])


def test_an_answer_that_comes_while_the_answered_are_read_is_among_them(stage: Stage, browser: Browser) -> None:
    pause = stage.until(stage.start({"name": "late", **PLANS["inputRequired"]}), "paused")["pause"]["id"]
    held: list[tuple[Route, APIResponse]] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append((route, route.fetch()))

    with stage.page(browser, "/") as page:
        expect(page.get_by_role("status").get_by_text("live")).to_be_visible()
        page.route("**/v1/inbox?answered=1*", hold)
        with page.expect_request("**/v1/inbox?answered=1*"):
            page.get_by_role("link", name="Inbox").first.click()
        row = page.locator(f".inbox-row[href$='{pause}']")
        expect(row).to_be_visible()
        stage.api("POST", f"/v1/inbox/{pause}/answer", {"answer": "answer", "value": "blue"})
        expect(row).to_have_count(0)  # the page has heard of it
        ((route, as_it_was),) = held
        route.fulfill(response=as_it_was)
        expect(row).to_contain_text("by local")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_pause_of_the_whole_task_is_lifted_or_ended_where_the_task_is(
    stage: Stage, browser: Browser, width: int
) -> None:
    for word, status, kind in (("Resume", "completed", "task.resumed"), ("Cancel…", "cancelled", "task.cancelled")):
        task = stage.start("hold", gate=f"{status}-{width}")
        stage.heard(task, "attempt.started", 2)
        stage.api("POST", f"/v1/tasks/{task}/pause", {"mode": "immediate"})
        stage.until(task, "paused")
        stage.open_gate(f"{status}-{width}")
        with stage.page(browser, f"/tasks/{task}", width=width) as page:
            page.get_by_role("button", name=word).click()
            if word == "Cancel…":
                page.get_by_role("dialog").get_by_role("button", name="Cancel the task").click()
            expect(page.locator(".task-title .status")).to_have_text(status)
        (said,) = [event for event in stage.events(task) if event["type"] == kind]
        assert (said["actor"]["id"], said["actor"]["via"]) == ("local", "http")


def test_what_passes_by_itself_is_told_on_tasks_and_not_in_the_inbox(
    built: None, tmp_path: Path, browser: Browser
) -> None:
    stage = Stage(tmp_path / "project")
    stage.serve()
    try:
        task = stage.start("hold", gate="full")
        stage.open_gate("full-disk")
        stage.until(task, "pausing")
        stage.open_gate("full")
        stage.until(task, "paused")
        with stage.page(browser) as page:
            row = page.locator(f"[data-row='{task}']")
            expect(row).to_contain_text("disk")
            page.goto(f"{stage.url}/inbox")
            expect(page.get_by_text("Nothing needs you.")).to_be_visible()
            page.goto(f"{stage.url}/tasks/{task}")
            expect(page.get_by_role("button", name="Resume")).to_be_enabled()
            (stage.gates / "full-disk").unlink()
            expect(page.locator(".task-title .status")).to_have_text("completed")
    finally:
        stage.close()


def test_what_was_answered_today_is_listed_whoever_did_it(stage: Stage, browser: Browser) -> None:
    with stage.page(browser, "/inbox") as page:
        task = stage.start("brief", topic="today", to="today@example.test")
        pause = stage.until(task, "paused")["pause"]["id"]
        stage.start("incident")  # so that something still needs somebody
        row = page.locator(f".inbox-row[href$='{pause}']").last  # for a moment it may stand in both lists
        expect(row).to_contain_text("Approval")
        stage.cli("approve", pause, "--detach")
        expect(page.get_by_role("heading", name="Answered today")).to_be_visible()
        expect(row).to_contain_text("approve by local")
        row.click()
        expect(page.get_by_text("Answered by local (cli)")).to_be_visible()
