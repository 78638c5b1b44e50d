"""What somebody does with a task, in a real browser: watch it, steer it, decide, go back; nothing is reloaded."""

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser.stage import Stage

BROKEN = {
    "name": "broken",
    "title": "Build and publish",
    "inputs": {"version": {"type": "string", "default": "1.4.0"}, "gate": {"type": "string"}},
    "steps": [
        {"id": "build", "title": "Build", "tool": "stage.echo", "with": {"value": "${inputs.version}"}},
        {"id": "publish", "title": "Publish", "tool": "stage.fail", "with": {"gate": "${inputs.gate}"}, "retry": 0},
        {"id": "announce", "title": "Announce", "tool": "stage.echo", "with": {"value": "${publish}"}},
    ],
}


def step(name: str) -> str:
    return f"[data-step='{name}']"


def row(page: Page, name: str, words: str) -> None:
    """The row of a step says this."""
    expect(page.locator(step(name))).to_have_attribute("aria-label", re.compile(words))


def test_a_task_is_watched_paused_and_resumed(stage: Stage, browser: Browser) -> None:
    with stage.page(browser) as page:
        expect(page.get_by_role("status")).to_contain_text("live")
        task = stage.start("hold", gate="watched")
        page.get_by_role("link", name="Hold until watched opens").click()
        page.evaluate("window.same = true")
        expect(page.get_by_role("heading", name="Hold until watched opens")).to_be_visible()
        row(page, "wait", "running")
        row(page, "last", "pending")
        page.get_by_role("button", name="Pause").click()
        expect(page.locator(".task-title .status")).to_have_text("pausing")
        stage.open_gate("watched")
        expect(page.locator(".task-title .status")).to_have_text("paused")
        row(page, "wait", "completed")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator(".task-title .status")).to_have_text("completed")
        row(page, "last", "completed")
        assert page.get_by_role("progressbar").get_attribute("aria-valuenow") == "100"
        assert page.evaluate("window.same") is True
        types = stage.types(task)
        assert {"task.pausing", "task.paused", "task.resumed"} <= set(types)


def test_an_approval_is_edited_and_the_edited_call_is_made(stage: Stage, browser: Browser) -> None:
    task = stage.start("brief", topic="edits")
    with stage.page(browser, "/inbox") as page:
        page.get_by_role("link", name="Send the brief to ana@example.test?").first.click()  # below: answered today
        page.get_by_role("button", name="Approve with other arguments").click()
        approve = page.get_by_role("button", name="Approve the edited call")
        expect(approve).to_be_disabled()
        page.get_by_label("subject").fill("Another subject")
        expect(page.get_by_role("region", name="What changes")).to_contain_text("+ Another subject")
        approve.click()
        expect(page.get_by_text("Answered by local (http)")).to_be_visible()
        page.get_by_role("link", name=task[:10]).click()
        expect(page.locator(".task-title .status")).to_have_text("completed with issues")
    assert "ana@example.test\tAnother subject\n" in (stage.gates / "sent.txt").read_text()
    answered = next(event for event in stage.events(task) if event["type"] == "pause.answered")
    assert answered["actor"] == {"kind": "human", "id": "local", "via": "http"}
    assert answered["data"]["answer"] == "edit"
    assert "Another subject" in str(answered["data"]["diff"])


def test_a_rejection_needs_a_note_and_keeps_it(stage: Stage, browser: Browser) -> None:
    task = stage.start("brief", topic="rejection")
    with stage.page(browser, f"/tasks/{task}") as page:
        page.get_by_role("button", name="Reject").click()
        send = page.get_by_role("button", name="Reject", exact=True)
        expect(send).to_be_disabled()
        page.get_by_label("Note").fill("not before Monday")
        send.click()
        expect(page.locator(".task-title .status")).to_have_text("failed")
    answered = next(event for event in stage.events(task) if event["type"] == "pause.answered")
    assert answered["data"]["note"] == "not before Monday"


def test_a_task_is_cancelled_after_a_second_look(stage: Stage, browser: Browser) -> None:
    task = stage.start("hold", gate="never")
    with stage.page(browser, f"/tasks/{task}") as page:
        row(page, "wait", "running")
        page.get_by_role("button", name="Cancel…").click()
        dialog = page.get_by_role("dialog", name="Cancel this task?")
        expect(dialog.get_by_role("button", name="Keep running")).to_be_focused()
        expect(dialog).to_contain_text("wait")
        dialog.get_by_role("button", name="Cancel the task").click()
        expect(page.locator(".task-title .status")).to_have_text("cancelled")
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_failed_task_is_retried_from_a_step_and_forked(stage: Stage, browser: Browser) -> None:
    task = stage.start(BROKEN, gate="published")
    with stage.page(browser, f"/tasks/{task}") as page:
        expect(page.locator(".task-title .status")).to_have_text("failed")
        expect(page.locator(".note.bad")).to_contain_text("the other side answered 502")
        stage.open_gate("published")
        page.locator(step("publish")).click()
        page.get_by_role("button", name="Retry from here…").click()
        dialog = page.get_by_role("dialog", name="Retry from a step")
        expect(dialog.locator("section", has_text="Kept")).to_contain_text("build")
        expect(dialog.locator("section", has_text="Runs again")).to_contain_text("publish")
        dialog.get_by_role("button", name="Retry").click()
        expect(page.locator(".task-title .status")).to_have_text("completed")
        expect(page.get_by_label("generation")).to_be_visible()

        page.get_by_role("button", name="More").click()
        page.get_by_role("menuitem", name="Fork…").click()
        dialog = page.get_by_role("dialog", name="Fork")
        dialog.get_by_label("From step").select_option("publish")
        dialog.get_by_label("Inputs").fill('{"version": "2.0.0", "gate": "published"}')
        dialog.get_by_role("button", name="Fork").click()
        expect(page.get_by_text("forked from")).to_be_visible()
        expect(page.locator(".task-title .status")).to_have_text("completed")
        assert page.url.rpartition("/")[2].partition("?")[0] != task
    fork = stage.api("GET", f"/v1/tasks?parent={task}")["items"][0]
    assert stage.api("GET", f"/v1/tasks/{fork['id']}")["inputs"]["version"] == "2.0.0"


def test_a_killed_server_comes_back_and_the_page_catches_up(built: None, tmp_path: Path, browser: Browser) -> None:
    stage = Stage(tmp_path / "project")
    stage.serve()
    try:
        task = stage.start("hold", gate="after")
        with stage.page(browser, f"/tasks/{task}?tab=journal") as page:
            row(page, "wait", "running")
            page.evaluate("window.same = true")
            stage.kill()
            expect(page.get_by_role("alert")).to_contain_text("Lost the connection")
            expect(page.get_by_role("button", name="Cancel…")).to_be_disabled()
            row(page, "wait", "running")  # what was known stays
            stage.serve()
            expect(page.get_by_role("status")).to_have_text(re.compile("^live"))
            stage.open_gate("after")
            expect(page.locator(".task-title .status")).to_have_text("completed")
            head = stage.api("GET", f"/v1/tasks/{task}")["seq"]
            expect(page.locator(f"[data-seq='{head}']")).to_be_visible()
            seqs = page.eval_on_selector_all("[data-seq]", "all => all.map(one => Number(one.dataset.seq))")
            assert seqs == list(range(1, head + 1))
            assert page.evaluate("window.same") is True
            assert "task.recovered" in stage.types(task)
            page.keyboard.press("g")
            page.keyboard.press("h")
            page.get_by_text("Tasks recovered from it").click()
            expect(page.get_by_role("region", name="Workers").get_by_role("link", name=task[:10])).to_be_visible()
    finally:
        stage.close()


def test_what_is_answered_elsewhere_says_by_whom_and_keeps_what_was_typed(stage: Stage, browser: Browser) -> None:
    task = stage.start("brief", topic="elsewhere")
    with stage.page(browser, f"/tasks/{task}") as page:
        page.get_by_role("button", name="Approve with other arguments").click()
        page.get_by_label("subject").fill("Half written")
        pause = stage.api("GET", f"/v1/tasks/{task}")["pause"]["id"]
        page.goto(f"{stage.url}/inbox/{pause}")
        page.get_by_role("button", name="Approve with other arguments").click()
        page.get_by_label("subject").fill("Half written")
        stage.cli("approve", pause, "--detach")
        expect(page.get_by_text("Answered by local (cli)")).to_be_visible()
        expect(page.get_by_label("subject")).to_have_value("Half written")
        expect(page.get_by_role("button", name="Approve the edited call")).to_be_disabled()


def test_a_line_of_the_log_can_be_sent_to_somebody(stage: Stage, browser: Browser) -> None:
    stage.open_gate("said")
    task = stage.start("hold", gate="said")
    stage.until(task, "completed")
    with stage.page(browser, f"/tasks/{task}?tab=logs") as page:
        line = page.locator(".log-line", has_text="the gate is open")
        line.get_by_role("link").click()
        expect(line).to_have_class(re.compile("here"))
        number = line.get_attribute("data-line")
        with stage.page(browser, page.url.removeprefix(stage.url)) as other:
            expect(other.locator(".log-line.here")).to_have_attribute("data-line", number or "")
            expect(other.locator(".log-line.here")).to_contain_text("the gate is open")
