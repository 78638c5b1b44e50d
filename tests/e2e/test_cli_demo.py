"""`everstep demo`: killed in the middle, by itself or by hand, it goes on where it stopped."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.commands import Project, Terminal


@pytest.fixture
def here(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def screens() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for one in opened:
        one.close()


def test_the_demo_is_killed_and_still_ends(here: Project) -> None:
    done = here.run("demo", "--fast")
    assert done.code == 0
    assert "kill -9" in done.err
    assert "restored from the journal: hits" in done.err
    assert "== pages was interrupted: called again, which is harmless" in done.err
    assert "ana changes the subject, and approves" in done.err
    assert "completed with 2 issues" in done.err, "one page hangs up, one wants a login"
    assert "PASS" in done.err
    assert "brief: out/" in done.out
    assert not (here.path / ".everstep-demo").exists()


def test_killed_by_hand_the_same_command_goes_on(here: Project, screens: list[Terminal]) -> None:
    screens.append(here.terminal("demo", "--kills", "0"))
    screens[-1].see("ok Search")
    screens[-1].kill()
    assert (here.path / ".everstep-demo").is_dir()
    screens.append(here.terminal("demo", "--kills", "0"))
    screens[-1].see("the last demo was cut short; it goes on where it stopped:")
    screens[-1].see("restored from the journal: hits")
    assert screens[-1].end() == 0
    assert "outcomes executed again 0" in screens[-1].text
    assert "PASS" in screens[-1].text


def test_ctrl_c_is_no_loss_either(here: Project, screens: list[Terminal]) -> None:
    screens.append(here.terminal("demo", "--fast", "--kills", "0"))
    screens[-1].see("ok Search")
    screens[-1].press_ctrl_c()
    assert screens[-1].end() == 130
    assert "go on: everstep demo" in screens[-1].text
    assert here.run("demo", "--fast", "--kills", "0").code == 0


def test_chaos_holds_the_world_against_the_journal(here: Project) -> None:
    done = here.run("demo", "--chaos", "--fast", "--kills", "3", "--seed", "5", "--json", "--keep")
    result = done.lines[-1]
    assert result["ok"], result
    assert (done.code, result["ok"], result["repeated"]) == (0, True, 0)
    assert 1 <= result["kills"] <= 4, "how many of the seeded moments come before its end depends on the machine"
    assert (result["ledger"]["lost"], result["ledger"]["doubled"], result["ledger"]["dark"]) == ([], [], [])
    assert result["ledger"]["asked"] == 1, "the approval; the mail itself is looked up"
    (send,) = [one for one in result["ledger"]["effects"] if one["effect"] == "send"]
    assert (send["expected"], send["made"], send["recorded"]) == (1, 1, 1)
    kept = Project(here.path / ".everstep-demo")
    (mail,) = (kept.path / "sent/new").iterdir()
    assert "Subject: Your brief on solar storage" in mail.read_text(), "as ana changed it"
    probed = [event for event in kept.run("show", "@last", "--events").lines if event["step"] == "send"][-1]
    assert (probed["type"], probed["data"]["via"]) == ("step.completed", "probe")


@pytest.mark.long
def test_a_release_is_rejected_and_done_better_in_a_fork(here: Project) -> None:
    done = here.run("demo", "release", "--chaos", "--fast", "--kills", "1", "--json", "--keep")
    result = done.lines[-1]
    assert result["ok"], result
    assert (done.code, result["ok"], result["repeated"]) == (0, True, 0)
    made = {one["effect"]: (one["expected"], one["made"], one["recorded"]) for one in result["ledger"]["effects"]}
    assert (made["bump"], made["tag"], made["publish"]) == ((2, 2, 2), (1, 1, 1), (1, 1, 1))
    kept = Project(here.path / ".everstep-demo")
    assert "v1.2.0" in kept.run("show", "@last").out
    forked, rejected = kept.run("ls", "--all", "--json").json["items"]
    assert (rejected["status"], forked["status"]) == ("failed", "completed")
    events = kept.run("show", rejected["id"], "--events").lines
    assert "new features" in str([event for event in events if event["type"] == "pause.answered"][-1])
    tests = [event for event in kept.run("show", forked["id"], "--events").lines if event["step"] == "tests"]
    assert [(event["type"], event["data"]["via"]) for event in tests] == [("step.completed", "copied")]


def test_an_incident_opens_the_breaker_and_restarts_once(here: Project) -> None:
    done = here.run("demo", "incident", "--fast", "--json", "--keep")
    result = done.lines[-1]
    assert result["ok"], result
    assert (done.code, result["ok"], result["kills"]) == (0, True, 1)
    (restart,) = result["ledger"]["effects"]
    assert (restart["made"], restart["recorded"]) == (1, 1)
    kept = Project(here.path / ".everstep-demo")
    events = kept.run("show", "@last", "--events").lines
    kinds = [(event["type"], event["step"]) for event in events]
    assert kinds.count(("attempt.started", "health")) == 6, "five calls, and the one elsewhere"
    assert ("step.fallback", "health") in kinds
    (asked,) = [event for event in events if event["type"] == "pause.opened" and event["step"] == "decide"]
    assert "checkout is down (503)" in asked["data"]["title"]
    assert kept.run("show", "@last", "--json").json["outputs"] == {"up": True}
