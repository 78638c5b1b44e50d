"""`everstep show TASK --html FILE`: one file, without a server, under a policy of its own."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.stage import Stage, watch


def test_a_task_in_one_file_needs_no_server(stage: Stage, browser: Browser, tmp_path: Path) -> None:
    evil = "</script><script>window.ran=1</script><img src=x onerror=window.ran=1>"
    plan = {
        "name": "kept",
        "steps": [{"id": "a", "title": evil, "tool": "stage.echo", "with": {"value": {"text": evil}}}],
    }
    task = stage.start(plan)
    stage.until(task, "completed")
    file = tmp_path / "kept.html"
    assert stage.cli("show", task, "--html", str(file)).strip() == str(file)
    complaints: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    watch(page, complaints)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    expect(page.locator("[data-step=a]")).to_have_attribute(
        "aria-label", "a, completed, " + (page.locator("[data-step=a] .step-time").text_content() or "")
    )
    page.locator("[data-step=a]").click()
    expect(page.locator("#tab-panel")).to_contain_text(evil)
    page.get_by_role("tab", name="Journal").click()
    page.get_by_role("button", name="attempt.started").click()
    expect(page.locator(".event")).to_contain_text("idempotency_key")
    expect(page.get_by_role("button", name="Fork…")).to_have_count(0)
    assert page.evaluate("window.ran") is None
    assert asked == [file.as_uri()]
    context.close()
    assert complaints == []
