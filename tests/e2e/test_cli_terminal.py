"""Somebody at a terminal: what scrolls, what is asked, what Ctrl-C and kill -9 leave behind."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.commands import Project, Terminal, project

ASK = """\
name: ask
steps:
  - {id: first, title: Think, tool: my.say, with: {text: one}}
  - {id: color, tool: ask, with: {question: Which colour?, schema: {enum: [red, blue]}}}
  - {id: note, title: Write it down, tool: my.say, with: {text: "${color}"}}
outputs: {text: "${note.text}"}
"""
HELD = """\
name: held
steps:
  - {id: first, title: Think, tool: my.say, with: {text: one}}
  - {id: long, title: Take long, tool: my.hold, with: {until: go}}
  - {id: last, tool: my.say, with: {text: two}}
outputs: {text: "${last.text}"}
"""
SENDS = """\
name: sends
steps:
  - {id: mail, title: Send the mail, tool: my.send, with: {to: ana, until: go}}
outputs: {text: "${mail.text}"}
"""
ASKS = """\
name: asks
steps:
  - id: note
    tool: my.say
    with: {text: hello}
    approve: {title: "Say it?", edit: [text]}
outputs: {text: "${note.text}"}
"""
Open = Callable[..., Terminal]


@pytest.fixture
def here(tmp_path: Path) -> Project:
    made = project(tmp_path)
    made.write("ask.plan.yaml", ASK)
    made.write("asks.plan.yaml", ASKS)
    made.write("held.plan.yaml", HELD)
    made.write("sends.plan.yaml", SENDS)
    return made


@pytest.fixture
def terminal(here: Project) -> Iterator[Open]:
    opened: list[Terminal] = []

    def start(*words: str) -> Terminal:
        opened.append(here.terminal(*words))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_a_question_is_asked_until_it_is_answered(terminal: Open) -> None:
    screen = terminal("run", "ask")
    screen.see("|| Which colour?")
    at = screen.see("red | blue (:skip :cancel :wait) >")
    screen.type("green\r")
    at = screen.see("the answer does not fit", at)
    screen.type("blx\x7fue\r")
    screen.see("text: blue", at)
    assert screen.end() == 0
    assert re.search(r" ok Think +\d\.\ds  text one\n", screen.text)
    assert re.search(r" ok Write it down +\d\.\ds  text blue\n", screen.text)
    assert "completed in" in screen.text
    assert screen.restored


@pytest.mark.req("W.2")
def test_a_call_is_shown_and_approved_where_it_is_asked(here: Project, terminal: Open) -> None:
    screen = terminal("run", "asks")
    at = screen.see("|| Say it?")
    at = screen.see('text = "hello"', at)
    at = screen.see("[a]pprove [e]dit [r]eject", at)
    screen.type("e\r")
    at = screen.see("text=VALUE", at)
    screen.type("text=goodbye\r")
    at = screen.see("text will change", at)
    screen.type("\r")
    screen.see("text: goodbye", at)
    assert screen.end() == 0


def test_approve_shows_the_call_and_asks(here: Project, terminal: Open) -> None:
    here.run("run", "asks")
    pause = here.run("inbox", "--json").json["items"][0]["id"]
    screen = terminal("approve", pause)
    at = screen.see('text = "hello"')
    screen.see("approve it? [y/N]", at)
    screen.type("n\r")
    assert screen.end() == 0
    assert here.run("inbox", "--json").json["items"][0]["status"] == "open"
    screen = terminal("approve", pause)
    screen.see("approve it? [y/N]")
    screen.type("y\r")
    screen.see("text: hello")
    assert screen.end() == 0


def test_leaving_it_waiting_gives_the_commands(here: Project, terminal: Open) -> None:
    screen = terminal("run", "ask")
    screen.see("(:skip :cancel :wait) >")
    screen.type(":wait\r")
    assert screen.end() == 8
    assert re.search(r"do:  everstep answer p_\w{8} answer --value JSON", screen.text)
    (pause,) = here.run("inbox", "--json").json["items"]
    done = here.run("answer", pause["id"], "--value", '"red"')
    assert (done.code, done.out) == (0, "text: red\n")


def test_when_another_door_answers_the_question_vanishes(here: Project, terminal: Open) -> None:
    screen = terminal("run", "ask")
    screen.see("(:skip :cancel :wait) >")
    assert here.run("answer", "@last", "answer", "--value", '"red"').code == 0
    screen.see("local answered through cli: answer")
    assert screen.end() == 0
    assert screen.restored


def test_ctrl_c_pauses_and_says_how_to_go_on(here: Project, terminal: Open) -> None:
    screen = terminal("run", "held")
    screen.see(".. Take long")
    screen.press_ctrl_c()
    screen.see("pausing after long; Ctrl-C again leaves at once")
    (here.path / "go").touch()
    assert screen.end() == 130
    assert re.search(r"Paused after long\. Nothing is lost\. Resume: everstep resume t_\w{8}", screen.text)
    again = terminal("run", "held")
    again.see("== 2 steps of 3 restored from the journal: first and long")
    assert again.end() == 0


def test_a_second_ctrl_c_leaves_at_once(here: Project, terminal: Open) -> None:
    screen = terminal("run", "held")
    screen.see(".. Take long")
    screen.press_ctrl_c()
    screen.see("Ctrl-C again leaves at once")
    screen.press_ctrl_c()
    assert screen.end() == 130
    assert "It is recovered at the next start: everstep resume t_" in screen.text
    (here.path / "go").touch()
    assert here.run("run", "held").code == 0


def test_ctrl_c_in_watch_leaves_the_task_alone(here: Project, terminal: Open) -> None:
    screen = terminal("run", "held")
    screen.see(".. Take long")
    watching = terminal("watch")
    watching.see(".. Take long")
    watching.press_ctrl_c()
    assert watching.end() == 130
    assert "Left it going" in watching.text
    (here.path / "go").touch()
    assert screen.end() == 0


def test_killed_the_terminal_is_usable_and_the_question_comes_back(here: Project, terminal: Open) -> None:
    screen = terminal("run", "sends")
    screen.see(".. Send the mail")
    while not (here.path / "go.begun").exists():
        assert screen.process.poll() is None
    screen.kill()
    assert screen.restored
    again = terminal("run", "sends")
    again.see("it [h]appened it did [n]ot [f]ail [s]kip [v]iew [w] leave it waiting >")
    assert "if calling it twice is harmless, write 'on_uncertain: retry' under step 'mail'" in again.text
    again.type("v\r")
    at = again.see("idempotencyKey: ")
    again.type("h\r")
    at = again.see("its output, as JSON", at)
    again.type('{"text": "ana"}\r')
    again.see("text: ana", at)
    assert again.end() == 0
    assert (here.path / "sent.txt").read_text() == "ana\n"


def test_no_prompt_and_no_drawing_when_told_so(terminal: Open) -> None:
    screen = terminal("run", "ask", "--no-input")
    assert screen.end() == 8
    plain = terminal("run", "ask", "--plain", "--no-input", "--new")
    assert plain.end() == 8
    assert "step.completed first" in plain.text
    assert "\x1b[" not in plain.text
    assert "====" not in plain.text


def test_the_footer_stays_short_and_the_screen_is_not_taken(terminal: Open, here: Project) -> None:
    screen = terminal("run", "held")
    screen.see(".. Take long")
    screen.see("1/3 ===-------")
    (here.path / "go").touch()
    assert screen.end() == 0
    raw = screen._raw
    assert b"\x1b[?1049h" not in raw
    assert raw.count(b"\x1b[?25l") <= raw.count(b"\x1b[?25h")


def test_answer_asks_when_no_answer_is_given(here: Project, terminal: Open) -> None:
    assert here.run("run", "ask").code == 8
    screen = terminal("answer", "@last")
    screen.see("red | blue (:skip :cancel :wait) >")
    screen.type("red\r")
    assert screen.end() == 0
    assert "text: red" in screen.text
