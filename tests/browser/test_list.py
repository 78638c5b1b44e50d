"""The list of tasks: long ones are a few nodes, and no row moves under a hand."""

from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.stage import Stage

ONE = {"name": "one", "steps": [{"id": "a", "tool": "stage.echo", "with": {"value": 1}}]}
PAGE = 50


def top(page: Page, task: str) -> float:
    """Where its row stands."""
    return float(page.locator(f"[data-row={task}]").evaluate("row => row.getBoundingClientRect().top"))


def test_no_row_moves_under_a_hand_and_what_arrives_waits(stage: Stage, browser: Browser) -> None:
    ends, stays = stage.start("hold", gate="ends"), stage.start("hold", gate="stays")
    for task in (ends, stays):
        stage.heard(task, "attempt.started", 2)
    with stage.page(browser) as page:
        row = page.locator(f"[data-row={stays}]")
        row.hover()
        before = top(page, stays), top(page, ends)
        asks, comes = stage.start("brief", topic="arrives"), stage.start("hold", gate="stays")
        stage.until(asks, "paused")
        expect(page.get_by_role("button", name="2 new")).to_be_visible()
        stage.open_gate("ends")
        expect(page.locator(f"[data-row={ends}]")).to_contain_text("completed")
        assert (top(page, stays), top(page, ends)) == before
        assert page.locator(f"[data-row={comes}]").count() == 0
        page.get_by_role("button", name="2 new").click()
        expect(page.get_by_role("region", name="Needs you").locator(f"[data-row={asks}]")).to_be_visible()
        expect(page.get_by_role("region", name="Finished").locator(f"[data-row={ends}]")).to_be_visible()
        row.hover()
        later = stage.start("hold", gate="stays")
        expect(page.get_by_role("button", name="1 new")).to_be_visible()
        page.mouse.move(1, 1)
        expect(page.locator(f"[data-row={later}]")).to_be_visible()
        expect(page.get_by_role("button", name="1 new")).to_have_count(0)
    stage.open_gate("stays")


def test_a_long_list_is_a_few_nodes_and_comes_page_by_page(stage: Stage, browser: Browser) -> None:
    tasks = [stage.start(ONE) for _ in range(PAGE + 10)]
    for task in tasks:
        stage.until(task, "completed")
    with stage.page(browser, width=768) as page:
        rows = page.get_by_role("region", name="Finished").locator(".task-row")
        rows.first.wait_for()
        page.wait_for_function(
            """last => {
          document.querySelector('#content').scrollTop += 2000;
          return document.querySelector(`[data-row="${last}"]`) !== null;
        }""",
            arg=tasks[0],
        )
        listed = int(rows.last.get_attribute("aria-setsize") or 0)
        assert rows.count() < listed, "only what can be seen is there"
        assert listed >= len(tasks)
        page.locator(f"[data-row={tasks[0]}] .title").focus()
        page.evaluate("document.querySelector('#content').scrollTop = 0")
        expect(page.locator(f"[data-row={tasks[0]}] .title")).to_be_focused()


def test_what_a_page_shows_is_asked_for_before_anything_else(stage: Stage, browser: Browser) -> None:
    task = stage.start(ONE)
    stage.until(task, "completed")
    asked: list[str] = []

    def note(request: Request) -> None:
        """Of the page that is shown now."""
        if request.is_navigation_request():
            asked.clear()
        asked.append(request.url.removeprefix(stage.url))

    with stage.page(browser, "/health") as page:
        page.on("request", note)
        for path, row, first in (
            ("/", ".task-row", "/v1/tasks?"),
            (f"/tasks/{task}", "[data-step=a]", f"/v1/tasks/{task}"),
        ):
            page.goto(f"{stage.url}/v1/ready")  # nothing of the page before
            page.goto(stage.url + path)
            page.locator(row).first.wait_for()
            assert next(one for one in asked if one.startswith("/v1/")).startswith(first)
