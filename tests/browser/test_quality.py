"""For everybody: no serious finding of axe on any page in either theme, the keyboard alone, every width, few bytes."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.stage import Stage
from tests.browser.test_stories import BROKEN

ROOT = Path(__file__).parents[2]
AXE = ROOT / "dashboard/node_modules/axe-core/axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
WIDTHS = (768, 320)


@pytest.fixture(scope="module")
def places(stage: Stage) -> dict[str, str]:
    """Every page, with something on it."""
    stage.open_gate("done")
    brief, failed = stage.start("brief", topic="places"), stage.start(BROKEN, gate="never")
    question, broken = stage.start("incident"), stage.start("fix")
    stage.start("hold", gate="done")
    stage.start("hold", gate="places")

    pauses = {task: stage.until(task, "paused")["pause"] for task in (brief, question, broken)}
    stage.until(failed, "failed")
    return {
        "tasks": "/",
        "task": f"/tasks/{brief}",
        "failed": f"/tasks/{failed}?step=publish&tab=attempts",
        "journal": f"/tasks/{failed}?tab=journal",
        "logs": f"/tasks/{failed}?step=build&tab=logs",
        "output": f"/tasks/{failed}?step=build&tab=output",
        "inbox": "/inbox",
        "approval": f"/inbox/{pauses[brief]['id']}",
        "question": f"/inbox/{pauses[question]['id']}",
        "tool error": f"/inbox/{pauses[broken]['id']}",
        "plans": "/plans",
        "plan": "/plans/brief",
        "health": "/health",
        "stats": "/stats",
        "nothing": "/tasks/t_00000000000000000000000000",
    }


def findings(page: Page, rules: list[str] | None = None) -> list[str]:
    """What axe finds serious or critical here."""
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": TAGS}
    found = page.evaluate("only => axe.run(document, {runOnly: only, resultTypes: ['violations']})", only)
    return [
        f"{one['id']}: {node['html'][:160]} {node['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def scrolls_sideways(page: Page, width: int) -> bool:
    """Whether anything is wider than the window would be."""
    page.set_viewport_size({"width": width, "height": 844})
    found = page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame("
        "() => done(document.documentElement.scrollWidth > document.documentElement.clientWidth))))"
    )
    page.set_viewport_size({"width": 1440, "height": 900})
    return bool(found)


def settled(page: Page) -> None:
    """Everything that was to be read is there."""
    expect(page.get_by_role("status").filter(has_text="live")).to_be_visible()
    expect(page.get_by_text("Reading…")).to_have_count(0)
    expect(page.locator("main :is(h1, h2):visible").first).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(
    stage: Stage, browser: Browser, places: dict[str, str], theme: str
) -> None:
    rules = None if theme == "light" else ["color-contrast"]
    bad: dict[str, list[str]] = {}
    with stage.page(browser, theme=theme) as page:  # type: ignore[arg-type]
        for name, path in places.items():
            page.goto(stage.url + path)
            settled(page)
            page.evaluate(AXE.read_text())
            bad[name] = findings(page, rules)
            if theme == "light":
                bad[name] += [f"scrolls sideways at {width}" for width in WIDTHS if scrolls_sideways(page, width)]
            if name == "approval":
                page.get_by_role("button", name="Approve with other arguments").click()
                page.get_by_label("subject").fill("Other")
                bad["edit"] = findings(page, rules)
            if name == "task":
                page.get_by_role("button", name="Cancel…").click()
                bad["cancel"] = findings(page, rules)
        for key, dialog in (("?", "Keys"), ("Control+k", "Find")):
            page.goto(stage.url)
            settled(page)
            page.keyboard.press(key)
            expect(page.get_by_role("dialog", name=dialog)).to_be_visible()
            page.evaluate(AXE.read_text())
            bad[dialog] = findings(page, rules)
    assert "\n".join(f"{name}: {one}" for name, found in bad.items() for one in found) == ""


def test_axe_finds_nothing_in_dialogs_and_menus_nor_in_forced_colours(
    stage: Stage, browser: Browser, places: dict[str, str]
) -> None:
    stage.open_gate("done")
    done = stage.start("hold", gate="done")
    stage.until(done, "completed")
    bad: dict[str, list[str]] = {}

    def look(page: Page, name: str) -> None:
        page.evaluate(AXE.read_text())
        bad[name] = findings(page)

    with stage.page(browser) as page:
        for act in ("Retry from a step…", "Fork…"):
            page.goto(f"{stage.url}/tasks/{done}")
            page.get_by_role("button", name="More").click()
            expect(page.get_by_role("menu")).to_be_visible()
            look(page, f"menu before {act}")
            page.get_by_role("menuitem", name=act).click()
            expect(page.get_by_role("dialog")).to_be_visible()
            look(page, act)
        page.goto(stage.url + places["tool error"])
        page.get_by_role("button", name="Supply the output…").click()
        look(page, "supply")
        page.goto(stage.url)
        page.get_by_role("button", name="Settings").click()
        look(page, "settings")
    with stage.page(browser, forced_colors="active") as page:
        for name in ("task", "approval", "health"):
            page.goto(stage.url + places[name])
            settled(page)
            look(page, f"forced {name}")
    assert "\n".join(f"{name}: {one}" for name, found in bad.items() for one in found) == ""


def test_every_answer_can_be_reached_by_a_thumb(stage: Stage, browser: Browser, places: dict[str, str]) -> None:
    with stage.page(browser, places["approval"], width=320) as page:
        for button in ("Approve", "Reject…"):
            box = page.get_by_role("button", name=button, exact=True).bounding_box()
            assert box is not None
            assert box["height"] >= 44


def test_an_approval_by_keyboard_alone(stage: Stage, browser: Browser) -> None:
    task = stage.start("brief", topic="keys", to="kay@example.test")
    with stage.page(browser) as page:
        settled(page)
        page.evaluate("addEventListener('pointerdown', () => { window.pointed = true })")
        expect(page.get_by_role("link", name="Research brief on keys")).to_be_visible()
        page.keyboard.press("g")
        page.keyboard.press("i")
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        title = page.get_by_role("heading", name="Send the brief to kay@example.test?")
        expect(page.get_by_role("link", name="Send the brief to kay@example.test?")).to_be_visible()
        for _ in range(60):
            page.keyboard.press("j")
            if title.is_visible():
                break
            expect(page.locator(".inbox-item h2").first).to_be_visible()
        expect(title).to_be_visible()
        edit = page.get_by_role("button", name="Approve with other arguments")
        expect(edit).to_be_enabled()
        for _ in range(80):
            page.keyboard.press("Tab")
            if edit.evaluate("one => one === document.activeElement"):
                break
        page.keyboard.press("Enter")
        expect(page.get_by_label("subject")).to_be_focused()
        page.keyboard.press("Control+a")
        page.keyboard.type("By keys")
        page.keyboard.press("Enter")  # alone it decides nothing
        assert stage.api("GET", f"/v1/tasks/{task}")["status"] == "paused"
        expect(page.get_by_role("region", name="What changes")).to_contain_text("+ By keys")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("Answered by local (http)")).to_be_visible()
        assert page.evaluate("window.pointed") is None
    stage.until(task, "completed")
    assert "kay@example.test\tBy keys\n" in (stage.gates / "sent.txt").read_text()


def test_a_plan_is_checked_and_started(stage: Stage, browser: Browser) -> None:
    with stage.page(browser, "/plans") as page:
        page.get_by_role("link", name="incident").click()
        page.get_by_role("textbox", name="service").fill("billing")
        page.get_by_role("button", name="Check").click()
        expect(page.get_by_text("Fine: 3 steps")).to_be_visible()
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("heading", name="Incident on billing")).to_be_visible()
        page.get_by_role("button", name="Answer…").click()
        page.get_by_text("escalate", exact=True).click()
        send = page.get_by_role("button", name="Answer", exact=True)
        page.get_by_label("because").fill("too short")
        send.click()
        expect(page.get_by_role("alert")).to_be_visible()  # the server says what is wrong, and what was typed stays
        page.get_by_label("because").fill("the error rate is rising")
        send.click()
        expect(page.locator(".task-title .status")).to_have_text("completed")


def test_whoever_may_only_look_is_told_so(stage: Stage, browser: Browser, places: dict[str, str]) -> None:
    looker = stage.api("POST", "/v1/tokens", {"name": "looker", "scopes": ["read"]})["value"]
    with stage.page(browser, places["task"]) as page:
        page.evaluate("value => localStorage.setItem('everstep.token', value)", looker)
        page.reload()
        expect(page.get_by_text("may look, but not start or steer")).to_be_visible()
        expect(page.get_by_role("button", name="Pause")).to_be_disabled()
        expect(page.get_by_role("button", name="Approve", exact=True)).to_be_disabled()
        page.goto(f"{stage.url}/health")
        expect(page.get_by_text("needs a token with the scope")).to_be_visible()


@pytest.mark.req("M.6", "DoD.10")
def test_tasks_queue_breakers_load_and_latency_are_seen_live_and_from_here_alone(
    built: None, tmp_path: Path, browser: Browser
) -> None:
    stage = Stage(tmp_path / "project")
    stage.serve()
    try:
        with stage.page(browser) as page:
            asked: list[str] = []
            page.on("request", lambda request: asked.append(request.url))
            expect(page.get_by_text("No tasks yet.")).to_be_visible()
            stage.until(stage.start("incident"), "paused")
            stage.until(stage.start("publish"), "failed")
            held = stage.start("publish", version="1.5.0")
            expect(page.get_by_role("link", name="Publish 1.5.0")).to_be_visible()
            expect(page.get_by_role("button", name="needs you 1")).to_be_visible()
            page.goto(f"{stage.url}/health")
            expect(page.locator(".verdict")).to_have_text("1 breaker is open: stage.fail.")
            breakers = page.get_by_role("region", name="Breakers")
            expect(breakers).to_contain_text("open: calls are held; 3 failures")
            expect(breakers).to_contain_text("because: bad_gateway: the other side answered 502")
            expect(breakers.get_by_role("link", name="publish")).to_be_visible()
            expect(page.get_by_role("region", name="Work", exact=True)).to_contain_text("Queued")
            expect(page.get_by_role("meter", name="Rate pages, calls in 1.0s")).to_be_visible()
            expect(page.get_by_role("meter", name="Tasks in work")).to_be_visible()
            expect(page.get_by_role("region", name="Workers")).to_contain_text("heartbeat")
            expect(page.get_by_role("region", name="Store")).to_contain_text("survives a power cut")
            expect(page.get_by_role("region", name="Store")).to_contain_text("95 % within")
            stage.open_gate("published")
            breakers.get_by_role("button", name="Reset…").click()
            page.get_by_role("dialog").get_by_role("button", name="Reset").click()
            expect(page.locator(".verdict")).to_contain_text("All well: 1 worker, 1 active task")
            stage.until(held, "completed")
            page.goto(f"{stage.url}/stats")
            expect(page.get_by_role("row", name="stage.echo")).to_contain_text("ms")
            expect(page.get_by_role("region", name="Outcomes", exact=True).get_by_role("img")).to_be_visible()
            assert {url.split("/")[2] for url in asked} == {f"127.0.0.1:{stage.port}"}
    finally:
        stage.close()


@pytest.mark.req("1.6")
def test_status_of_a_task_status_and_phase_of_a_step_are_three_words(stage: Stage, browser: Browser) -> None:
    task = stage.start("brief", topic="words")
    seen = stage.until(task, "paused")
    step = stage.api("GET", f"/v1/tasks/{task}/steps/send")
    assert (seen["status"], step["status"], step["phase"]) == ("paused", "paused", "awaiting_approval")
    shown = json.loads(stage.cli("--json", "show", task, "send"))
    assert (shown["status"], shown["phase"]) == ("paused", "awaiting_approval")
    assert json.loads(stage.cli("--json", "show", task))["status"] == "paused"
    with stage.page(browser, f"/tasks/{task}?step=send&tab=input") as page:
        expect(page.locator(".task-title .status")).to_have_text("needs you")
        head = page.locator(".inspector-head")
        expect(head.locator(".status")).to_have_text("needs you")
        expect(head.locator(".tag")).to_have_text("awaiting approval")


def test_few_bytes_are_loaded_first(built: None) -> None:
    static = ROOT / "src/everstep/doors/dashboard/static"
    built_files = json.loads((static / "build.json").read_text())["sizes"]
    sizes = {name: size for name, size in built_files.items() if not name.startswith("report/")}  # not served
    document = (static / "index.html").read_text()
    first = {name: size["gzip"] for name, size in sizes.items() if name in document and name != "index.html"}
    assert first
    assert sum(first.values()) <= 100 * 1024
    rest = {name: size["gzip"] for name, size in sizes.items() if name not in first}
    assert max(rest.values()) <= 35 * 1024
    assert sum(size["gzip"] for size in sizes.values()) <= 180 * 1024
