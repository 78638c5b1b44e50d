"""Signing in: by the link that `everstep serve` prints, by a token, and again when the session is over."""

from playwright.sync_api import Browser, expect

from tests.browser.stage import Stage, watch


def test_the_printed_link_signs_in_once_and_leaves_the_address(stage: Stage, browser: Browser) -> None:
    complaints: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    watch(page, complaints)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(stage.ready["sign_in_url"])
    expect(page.get_by_role("heading", name="Tasks")).to_be_visible()
    assert "#" not in page.url
    assert not any("code=" in url for url in asked[1:])
    assert {url.split("/")[2] for url in asked} == {f"127.0.0.1:{stage.port}"}  # nobody else is ever asked
    expect(page.get_by_role("status")).to_contain_text("live")
    assert context.cookies() == []
    context.close()
    assert complaints == []

    context = browser.new_context()
    page = context.new_page()
    page.goto(stage.ready["sign_in_url"])
    expect(page.get_by_role("alert")).to_contain_text("wrong, used or too old")
    page.get_by_label("Token or link").fill(stage.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("dialog", name="Sign in")).to_have_count(0)
    expect(page.get_by_role("status")).to_contain_text("live")
    context.close()


def test_a_session_that_is_over_asks_again_above_the_same_page(stage: Stage, browser: Browser) -> None:
    with stage.page(browser) as page:
        expect(page.get_by_role("status")).to_contain_text("live")
        made = stage.api("POST", "/v1/tokens", {"name": "short", "actor": {"kind": "human", "id": "ana"}})
        page.evaluate("value => localStorage.setItem('everstep.token', value)", made["value"])
        page.goto(f"{stage.url}/?q=abc")
        expect(page.get_by_role("status")).to_contain_text("live")
        stage.api("DELETE", f"/v1/tokens/{made['id']}")
        expect(page.get_by_role("dialog", name="Sign in")).to_be_visible()
        expect(page.get_by_role("status")).to_contain_text("signed out")
        page.get_by_label("Token or link").fill(stage.token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("status")).to_contain_text("live")
        assert page.url.endswith("/?q=abc")
        expect(page.get_by_role("searchbox")).to_have_value("abc")
