"""`everstep signal`: the outside world ends a wait, whoever carries the task and however often it was killed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.e2e.commands import Project, Terminal

Screens: TypeAlias = Callable[[], Terminal]

PLAN = """\
name: order
steps:
  - {id: paid, tool: wait, with: {event: paid, key: order-1}}
outputs: {amount: "${paid.data.amount}"}
"""


@pytest.fixture
def here(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.write("order.plan.yaml", PLAN)
    return project


def send(here: Project, *more: str) -> int:
    sent = here.run("signal", "paid", "--key", "order-1", "--data", '{"amount": 12}', "--json", *more)
    assert sent.code == 0, sent.err
    return int(sent.json["delivered"])


@pytest.fixture
def screens(here: Project) -> Iterator[Screens]:
    opened: list[Terminal] = []

    def waits() -> Terminal:
        opened.append(here.terminal("run", "order.plan.yaml"))
        opened[-1].see("waits for event paid with key order-1")
        return opened[-1]

    yield waits
    for one in opened:
        one.close()


def test_a_task_under_way_hears_it(here: Project, screens: Screens) -> None:
    screen = screens()
    assert send(here) == 1
    assert screen.end() == 0
    assert "amount: 12" in screen.text


@pytest.mark.req("X.8")
def test_before_meanwhile_and_after_a_kill(here: Project, screens: Screens) -> None:
    assert send(here, "--id", "early") == 0
    done = here.run("run", "order.plan.yaml")
    assert (done.code, done.out) == (0, "amount: 12\n")
    screens().kill()
    assert send(here) == 1, "nobody carries it, and still it is heard"
    done = here.run("run", "order.plan.yaml")
    assert (done.code, done.out) == (0, "amount: 12\n")
    screens().kill()
    again = screens()
    assert send(here) == 1
    assert again.end() == 0
    assert here.run("db", "check").code == 0
    assert send(here, "--id", "early") == 1, "known, and heard once"


def test_what_is_wrong_is_said(here: Project) -> None:
    for words in (("paid", "--data", "{"), ("pa id",), ("paid", "--key", ""), ("paid", "--data", "@gone.json")):
        refused = here.run("signal", *words)
        assert refused.code in (2, 3, 5)
        assert "error:" in refused.err
