"""`check_journal`: where today's plan would leave the way that was gone."""

from pathlib import Path

import pytest

from everstep.authoring.plan import Plan
from everstep.domain.errors import Validation
from everstep.domain.ids import Seq
from everstep.domain.values import JsonObject
from everstep.testing import TestEngine, check_journal, fake

FIND: JsonObject = {"id": "find", "tool": "library.search", "with": {"query": "${inputs.topic}"}}
READ: JsonObject = {"id": "read", "tool": "library.read", "for_each": "${find.names}", "with": {"name": "${item}"}}
SEND: JsonObject = {"id": "send", "tool": "mail.post", "with": {"text": "${read[0].text}"}}


def plan(*steps: JsonObject) -> Plan:
    return Plan.from_dict({"name": "p", "inputs": {"topic": "string"}, "steps": [*steps]})


@pytest.fixture
async def journal(tmp_path: Path) -> Path:
    fakes = {
        "library.search": fake(returns={"names": ["a", "b"]}),
        "library.read": fake(returns={"text": "…"}),
        "mail.post": fake(returns={}),
    }
    async with TestEngine(fakes) as t:
        task = await t.start(plan(FIND, READ, SEND), {"topic": "solar"})
        await task.result()
        lines = [event.encoded async for event in t.desk.events(task.task_id, Seq(0), follow=False)]
    file = tmp_path / "task.jsonl"
    file.write_bytes(b"\n".join(lines) + b"\n")
    return file


def told(journal: Path, *steps: JsonObject) -> list[str]:
    return [str(one) for one in check_journal(journal, plan(*steps))]


async def test_the_same_plan_goes_the_same_way(journal: Path) -> None:
    assert told(journal, FIND, READ, SEND) == []
    assert told(journal, FIND, {**READ, "parallel": 2}, SEND, {"id": "more", "tool": "mail.post"}) == []


async def test_departures_are_named_with_their_place(journal: Path) -> None:
    assert told(journal, FIND, READ) == ["seq 11, step send: the plan has no such step"]
    (other,) = told(journal, {**FIND, "tool": "web.search"}, READ, SEND)
    assert other == "seq 3, step find: it calls web.search now, it called library.search"
    (changed,) = told(journal, FIND, READ, {**SEND, "with": {"text": "Dear ${inputs.topic}"}})
    assert changed == 'seq 11, step send: it is called with {"text":"Dear solar"} now, it was with {"text":"…"}'
    assert len(told(journal, FIND, {**READ, "with": {"name": "${index}"}}, SEND)) == 2
    (gone,) = told(journal, FIND, READ, {**SEND, "with": {"text": "${find.nothing}"}})
    assert "cannot be resolved now" in gone


async def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "no.jsonl"
    file.write_text("{}\n")
    with pytest.raises(Validation, match="line 1"):
        check_journal(file, plan(FIND))
