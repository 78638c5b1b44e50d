"""Standing still through the command line: one task at once, everything, and finding what waits."""

from pathlib import Path

import pytest

from tests.e2e.commands import Project, project
from tests.e2e.test_cli_tasks import HELLO, SENDS, until_begun


@pytest.fixture
def here(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.write("hello.plan.yaml", HELLO)
    made.write("sends.plan.yaml", SENDS)
    return made


def test_everything_stands_still_over_restarts_and_goes_on(here: Project) -> None:
    name = here.run("run", "hello", "--detach", "--label", "team=blue").out.strip()
    halted = here.run("pause", "--all", "--now", "--note", "drill", "--json")
    assert (halted.code, halted.json["halt"]["mode"], halted.json["halt"]["note"]) == (0, "immediate", "drill")
    shown = here.run("show", name, "--json").json
    assert (shown["status"], shown["explain"]["waiting_on"]["kind"]) == ("queued", "halt")
    another = here.run("run", "hello", "--new", "--timeout", "100ms")
    assert (another.code, "Everything stands still (drill); go on: everstep resume --all" in another.err) == (8, True)
    assert here.run("resume", "--all").out == "everything goes on\n"
    assert here.run("resume", name).code == 0
    assert [item["id"] for item in here.run("ls", "--label", "team=blue", "--json").json["items"]] == [shown["id"]]
    assert here.run("ls", "--label", "team=red", "--json").json["items"] == []
    assert len(here.run("ls", "--tool", "my.say", "--json").json["items"]) == 2
    assert here.run("ls", "--reason", "toolError", "--json").json["items"] == []


@pytest.mark.parametrize("command", [("pause",), ("resume",), ("pause", "t_1234", "--all"), ("ls", "--label", "x")])
def test_one_task_or_all_but_not_both_or_neither(here: Project, command: tuple[str, ...]) -> None:
    refused = here.run(*command)
    assert (refused.code, "[bad_request]" in refused.err) == (2, True)


def test_where_there_is_no_store_nothing_can_stand_still(here: Project) -> None:
    refused = here.run("pause", "--all")
    assert (refused.code, "there is nothing here yet" in refused.err) == (5, True)


def test_a_pause_at_once_says_what_it_waits_for(here: Project) -> None:
    first = here.start("run", "sends", "--json")
    until_begun(here)
    paused = here.run("pause", "@last", "--now")
    assert "waits for mail: what must not be repeated is let end" in paused.err
    (here.path / "go").touch()
    first.communicate(timeout=60)
    assert first.returncode == 8
