"""Data of strangers in a real browser: nothing of it runs, nothing of it hides, and nothing large freezes the page."""

import re

from playwright.sync_api import Browser, Page, expect

from tests.browser.payloads import PAYLOADS
from tests.browser.stage import Stage
from tests.browser.trace import heap_mb, scroll, share, traced

LISTEN = """
window.violations = [];
addEventListener('securitypolicyviolation', event => violations.push(event.violatedDirective + ' ' + event.blockedURI));
"""


def text(payload: str) -> str:
    """Inside a plan, where `${` begins a binding."""
    return payload.replace("${", "$ {")


def harmless(page: Page) -> None:
    """Nothing ran, nothing was made, nobody was asked."""
    assert page.evaluate("window.ran") is None
    assert page.locator("canary-element").count() == 0
    assert page.evaluate("window.violations") == []


def test_two_hundred_payloads_through_every_field(stage: Stage, browser: Browser) -> None:
    assert len(set(PAYLOADS)) == 200
    tasks = []
    for n in range(0, 200, 25):
        group = [text(one) for one in PAYLOADS[n : n + 25]]
        steps: list[dict[str, object]] = [
            {"id": f"s{k}", "title": one, "tool": "stage.echo", "with": {"value": {one: one, "list": [one]}}}
            for k, one in enumerate(group)
        ]
        steps.append(
            {
                "id": "fails",
                "title": group[0],
                "tool": "stage.read",
                "with": {"url": f"{group[1]}/3"},
                "retry": 0,
                "on_error": "continue",
            }
        )
        ask = {"title": group[2], "show": [group[3], {group[4]: group[5]}], "edit": ["subject", "text"]}
        steps.append({"id": "send", "title": group[6], "tool": "stage.send", "approve": ask, "guidance": group[7],
                      "with": {"to": group[8], "subject": group[9], "text": "\n".join(group)}})  # fmt: skip
        plan = {"name": f"strange-{n}", "title": group[10], "description": group[11], "steps": steps}
        body = {"plan": plan, "title": group[12], "labels": {"label": group[13][:200]}}
        tasks.append(str(stage.api("POST", "/v1/tasks", body)["id"]))
    with stage.page(browser, "/inbox") as page:
        page.context.add_init_script(LISTEN)
        page.goto(f"{stage.url}/inbox")
        expect(page.locator(".inbox-row").nth(len(tasks) - 1)).to_be_visible()
        harmless(page)
        for n, task in enumerate(tasks):
            page.goto(f"{stage.url}/tasks/{task}")
            expect(page.locator("[data-step=send]")).to_have_attribute("aria-label", re.compile("needs you"))
            harmless(page)
            for tab in ("input", "attempts", "journal", "logs", "output") if n == 0 else ("output",):
                page.locator("[data-step=s3]").click()
                page.locator(f"#tab-{tab}").click()
                expect(page.locator("#tab-panel")).not_to_be_empty()
            page.locator("[data-step=fails]").click()
            expect(page.locator("#tab-panel .error-card").first).to_be_visible()
            harmless(page)
        page.goto(f"{stage.url}/inbox/{stage.until(tasks[0], 'paused')['pause']['id']}")
        page.get_by_role("button", name="Approve with other arguments").click()
        page.get_by_label("subject").fill(PAYLOADS[0])
        expect(page.get_by_role("region", name="What changes")).to_contain_text(PAYLOADS[0])
        page.goto(f"{stage.url}/?q={PAYLOADS[1]}".replace("<", "%3C").replace(">", "%3E"))
        expect(page.get_by_text("No task with")).to_be_visible()
        page.goto(stage.url)
        expect(page.locator(".task-row").first).to_be_visible()
        harmless(page)


def test_what_cannot_be_seen_is_spelled_out_where_it_is_approved(stage: Stage, browser: Browser) -> None:
    evil = "ana@example.test\u202e\u200bmoc"
    step = {
        "id": "send",
        "tool": "stage.send",
        "approve": "Send it?",
        "with": {"to": evil, "subject": "https://\u0430pple.test/x", "text": "t"},
    }
    task = stage.start({"name": "spoof", "steps": [step]})
    with stage.page(browser, f"/tasks/{task}") as page:
        call = page.locator(".call")
        expect(call).to_contain_text("ana@example.test⟨U+202E⟩⟨U+200B⟩moc")
        link = call.get_by_role("link")
        expect(link).to_have_text("https://xn--pple-43d.test/x")
        assert link.get_attribute("rel") == "noopener noreferrer"


def test_another_page_can_neither_frame_nor_ask(stage: Stage, browser: Browser) -> None:
    with stage.page(browser) as page:
        headers = page.request.get(stage.url).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        said = page.request.post(f"{stage.url}/v1/tasks", data={}, headers={
            "origin": "https://evil.test", "authorization": f"Bearer {stage.token}"
        })  # fmt: skip
        assert said.status == 403


def test_a_large_output_is_shown_in_part(stage: Stage, browser: Browser) -> None:
    task = stage.start({"name": "big", "steps": [{"id": "big", "tool": "stage.big", "with": {"megabytes": 15}}]})
    with stage.page(browser, f"/tasks/{task}") as page:
        expect(page.locator(".task-title .status")).to_have_text("completed")
        page.locator("[data-step=big]").click()
        page.locator("#tab-output").click()
        shown = page.locator("pre.first")
        expect(shown).to_contain_text("00000000 0123456789abcdef")
        assert len(shown.text_content() or "") <= 64 * 1024
        expect(page.get_by_role("button", name="Download")).to_be_visible()
        page.locator("[data-step=big]").click()  # it still answers


def test_ten_thousand_rows_are_a_few_nodes(stage: Stage, browser: Browser) -> None:
    steps = [
        {"id": "n", "tool": "stage.numbers", "with": {"many": 10_000}},
        {"id": "many", "for_each": "${n}", "parallel": 50, "tool": "stage.item", "with": {"n": "${item}"}},
        *({"id": f"s{n}", "tool": "stage.echo", "with": {"value": n}} for n in range(498)),
    ]
    task = stage.start({"name": "huge", "steps": steps})
    stage.until(task, "completed")
    with stage.page(browser, f"/tasks/{task}") as page:
        expect(page.locator(".task-title .status")).to_have_text("completed")
        many = page.locator("[data-step=many]")
        expect(many).to_have_attribute("aria-label", re.compile("10000 of 10000"), timeout=60_000)
        expect(many).to_have_attribute("aria-expanded", "false", timeout=120_000)  # its items are here
        page.locator("[data-step=many] .twist").click()
        grid = page.get_by_role("treegrid")
        expect(grid).to_have_attribute("aria-rowcount", "10500", timeout=60_000)
        page.locator(".rows-scroll").evaluate("one => one.scrollTop = 5000 * 28")
        expect(page.locator("[data-step='many[5000]']")).to_be_visible()
        assert page.get_by_role("row").count() < 100
        assert page.evaluate("document.querySelectorAll('*').length") < 3000
        page.locator(".rows-scroll").evaluate("one => one.scrollTop = 0")
        with traced(page) as traces:
            scroll(page, ".rows-scroll", 60)
        assert len(traces[0].frames_ms) >= 50
        assert share(traces[0].frames_ms, 0.95) < 50  # of CPU time; by the clock it depends on who else is here
        assert heap_mb(page) < 150
