"""Values and times as they are shown: large ones read beside the page, tables, plans as written, right ages."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.stage import Stage

SECONDS = re.compile(r"(now|just now|\d+ s|[1-5] min)( ago)?")
WRONG_BY_AN_HOUR = """(() => {
  const [Real, by] = [Date, %d * 3600000];
  globalThis.Date = class extends Real {
    constructor(...given) { given.length ? super(...given) : super(Real.now() + by); }
    static now() { return Real.now() + by; }
  };
})()"""


def kept(stage: Stage, value: object) -> str:
    """A task whose one step gave this."""
    task = stage.start({"name": "kept", "steps": [{"id": "give", "tool": "stage.echo", "with": {"value": value}}]})
    stage.until(task, "completed")
    return f"/tasks/{task}?step=give&tab=output"


def test_a_large_value_is_read_and_searched_beside_the_page(stage: Stage, browser: Browser) -> None:
    rows = [{"id": n, "name": f"row {n}", "text": "x" * 60} for n in range(1200)]
    rows[777]["text"] = "the needle"
    with stage.page(browser, kept(stage, rows)) as page:
        tree = page.locator(".payload .json")
        expect(tree).to_be_visible()
        assert len(page.workers) == 1  # under the policy that lets nothing else be one
        tree.get_by_label("Search in this value").fill("needle")
        expect(tree.get_by_text("the needle")).to_be_visible()
        expect(tree.locator(".j-node .j-node")).to_have_count(1)  # the one row
        tree.get_by_role("button", name="Table").click()
        expect(tree.get_by_role("columnheader")).to_have_text(["id", "name", "text"])
        expect(tree.get_by_role("row")).to_have_count(101)


def test_an_edit_of_a_long_text_shows_the_lines_that_differ(stage: Stage, browser: Browser) -> None:
    text = "".join(f"line {n}\n" for n in range(60))
    step = {
        "id": "send",
        "tool": "stage.echo",
        "with": {"value": text},
        "approve": {"title": "Say it?", "edit": ["value"]},
    }
    task = stage.start({"name": "long", "steps": [step]})
    pause = stage.until(task, "paused")["pause"]["id"]
    with stage.page(browser, f"/inbox/{pause}") as page:
        page.get_by_role("button", name="Approve with other arguments").click()
        page.get_by_label("value").fill(text.replace("line 30\n", "line thirty\n"))
        changes = page.get_by_role("region", name="What changes")
        expect(changes).to_contain_text("- line 30\n+ line thirty\n")
        expect(changes).to_contain_text("… 27 lines as before …")
        expect(changes).not_to_contain_text("line 12")


def test_what_is_asked_again_says_what_is_other_than_before(stage: Stage, browser: Browser) -> None:
    letter = {"to": "ana@example.test", "subject": "First", "text": "t"}
    steps = [{"id": "send", "title": "Send it", "tool": "stage.send", "with": letter, "approve": "Send it?"}]
    task = stage.start({"name": "again", "steps": steps})
    first = stage.until(task, "paused")["pause"]
    stage.api("POST", f"/v1/inbox/{first['id']}/answer", first["answers"][0]["request"]["body"])
    stage.until(task, "completed")
    again = {"from_step": "send", "arguments": {"send": {"subject": "Second"}}, "note": "once more"}
    stage.api("POST", f"/v1/tasks/{task}/retry", {**again, "confirm_effects": True})
    stage.until(task, "paused")
    with stage.page(browser, f"/tasks/{task}") as page:
        since = page.get_by_role("region", name="Since it was last asked")
        expect(since).to_contain_text("Changed since local said approve")
        expect(since).to_contain_text("- First\n+ Second")
        page.keyboard.press(".")  # the next problem
        expect(page.locator("[data-step=send]")).to_be_focused()
        page.keyboard.press("Control+k")
        page.get_by_label("Find tasks, plans and actions").fill("send it")
        page.get_by_role("option", name="Send it step").click()
        expect(page.get_by_role("heading", name="Send it send")).to_be_visible()


def test_a_plan_is_shown_as_it_is_written(stage: Stage, browser: Browser) -> None:
    with stage.page(browser, "/plans/brief") as page:
        page.get_by_text("The plan itself").click()
        expect(page.get_by_label("The plan as YAML")).to_contain_text("name: brief\n")


@pytest.mark.parametrize("hours", [1, -1])
def test_ages_are_right_where_the_clock_is_wrong(stage: Stage, browser: Browser, hours: int) -> None:
    task = stage.start("brief", topic=f"clock {hours}")
    stage.until(task, "paused")
    with stage.page(browser, "/health") as page:
        page.add_init_script(WRONG_BY_AN_HOUR % hours)
        page.goto(f"{stage.url}/?q=clock")
        row = page.locator(f"[data-row={task}]")
        expect(row).to_contain_text("waiting for you")
        expect(row.locator("time").last).to_have_text(SECONDS)
        assert all(SECONDS.fullmatch(told) for told in row.locator("time").all_text_contents())


def test_what_was_made_of_a_task_is_linked_and_a_generation_says_where_it_began(stage: Stage, browser: Browser) -> None:
    task = stage.start({"name": "twice", "steps": [{"id": one, "tool": "stage.echo"} for one in ("first", "then")]})
    stage.until(task, "completed")
    fork = stage.api("POST", f"/v1/tasks/{task}/fork", {"from_step": "then", "note": "try it another way"})["id"]
    stage.api("POST", f"/v1/tasks/{task}/retry", {"from_step": "then", "confirm_effects": True})
    stage.until(task, "completed")
    stage.until(fork, "completed")
    with stage.page(browser, f"/tasks/{task}") as page:
        expect(page.locator(".task-meta")).to_contain_text("led to")
        expect(page.get_by_label("generation").locator("option")).to_have_text(["all", "1", "2 (from then)"])
        page.locator(f".task-meta a[href$='{fork}']").click()
        expect(page.locator(".task-meta")).to_contain_text("forked from")


def test_in_forced_colours_and_without_motion_everything_is_said(stage: Stage, browser: Browser) -> None:
    task = stage.start("brief", topic="forced")
    stage.until(task, "paused")
    with stage.page(browser, f"/tasks/{task}", forced_colors="active") as page:
        expect(page.locator(".task-title .status")).to_have_text("needs you")
        assert page.evaluate("matchMedia('(forced-colors: active)').matches")
        moving = (
            "[...document.querySelectorAll('*')].filter(one => getComputedStyle(one).animationName !== 'none').length"
        )
        assert page.evaluate(moving) == 0
        bar = page.get_by_role("progressbar").first
        assert bar.locator("i").evaluate("one => getComputedStyle(one).backgroundColor") != bar.evaluate(
            "one => getComputedStyle(one).backgroundColor"
        )
