"""Others at the same time, closed ways, sessions that end in the middle of a form: nothing that was typed is lost."""

import re

from playwright.sync_api import Browser, WebSocketRoute, expect

from tests.browser.stage import Stage

KEY = "everstep.token"


def somebody(stage: Stage, name: str) -> dict[str, str]:
    made: dict[str, str] = stage.api("POST", "/v1/tokens", {"name": name, "actor": {"kind": "human", "id": name}})
    return made


def silent(socket: WebSocketRoute) -> None:
    """Nothing ever comes through it."""


def test_of_two_who_approve_at_once_one_wins_and_the_other_is_told_who(stage: Stage, browser: Browser) -> None:
    task = stage.start("brief", topic="two")
    pause = stage.until(task, "paused")["pause"]["id"]
    ana, ben = somebody(stage, "ana"), somebody(stage, "ben")
    with stage.page(browser) as first, stage.page(browser) as second:
        second.route_web_socket(re.compile("/v1/"), silent)  # so that this one does not know yet
        for page, who in ((first, ana), (second, ben)):
            page.evaluate("([key, value]) => localStorage.setItem(key, value)", [KEY, who["value"]])
            page.goto(f"{stage.url}/inbox/{pause}")
            expect(page.get_by_role("button", name="Approve", exact=True)).to_be_enabled()
        first.get_by_role("button", name="Approve", exact=True).click()
        expect(first.get_by_text("Answered by ana (http)")).to_be_visible()
        second.get_by_role("button", name="Approve", exact=True).click()
        expect(second.get_by_text("Answered by ana (http)")).to_be_visible()
        expect(second.get_by_role("button", name="Approve", exact=True)).to_have_count(0)
    assert stage.types(task).count("pause.answered") == 1


def test_a_session_that_ends_in_the_middle_of_a_form_loses_nothing(stage: Stage, browser: Browser) -> None:
    task = stage.start("brief", topic="expiry")
    pause = stage.until(task, "paused")["pause"]["id"]
    eve = somebody(stage, "eve")
    with stage.page(browser) as page:
        page.evaluate("([key, value]) => localStorage.setItem(key, value)", [KEY, eve["value"]])
        page.goto(f"{stage.url}/inbox/{pause}")
        page.get_by_role("button", name="Approve with other arguments").click()
        page.get_by_label("subject").fill("Half written")
        stage.api("DELETE", f"/v1/tokens/{eve['id']}")
        page.get_by_label("Token or link").fill(stage.token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("status")).to_contain_text("live")
        expect(page.get_by_label("subject")).to_have_value("Half written")
        page.get_by_role("button", name="Approve the edited call").click()
        expect(page.get_by_text("Answered by local (http)")).to_be_visible()
    stage.until(task, "completed")
    assert "Half written" in (stage.gates / "sent.txt").read_text()


def test_where_websockets_are_refused_it_goes_on_another_way(stage: Stage, browser: Browser) -> None:
    with stage.page(browser) as page:
        page.route_web_socket(re.compile("/v1/"), lambda socket: socket.close(code=1011))
        page.goto(stage.url)
        expect(page.get_by_role("status")).to_have_text("live (polling)")
        stage.start("incident", service="polled")
        expect(page.get_by_role("link", name="Incident on polled")).to_be_visible()
