"""`mail.send` against a real SMTP server that writes real messages; also killed in the worst moment (S53)."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from everstep import Plan
from everstep.adapters.mail.account import server_of
from everstep.adapters.mail.dialogue import judged
from everstep.adapters.mail.marks import mark
from everstep.domain.redact import Redactor
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Denied, ToolError
from everstep.testing import TestEngine
from tests.unit.adapters.post import PLAIN, Post, config_of, tools_of
from tests.unit.contexts import call_of, context
from tests.unit.passing import ends


@pytest.mark.req("Comm.1", "TI.2")
async def test_a_message_arrives_as_it_was_written(post: Post, tmp_path: Path) -> None:
    tools = tools_of(post, tmp_path)
    call = call_of(
        "mail.send", {**PLAIN, "cc": ["bo@example.test"], "bcc": ["secret@example.test"], "html": "<p>Hello"}, key="k1"
    )
    assert tools.validate(call) == []
    told = await tools.execute(call, context())
    assert isinstance(told, dict)
    assert told["message_id"] == "<k1@example.test>"
    (message,) = post.messages()
    assert (message["Subject"], message["To"], message["Cc"], message["Bcc"]) == (
        "Grüße",
        "ana@example.test",
        "bo@example.test",
        None,
    )
    body = message.get_body(("plain",))
    assert body is not None
    assert body.get_content().replace("\r\n", "\n") == "Hello\n.\nfrom a dot\n"
    assert post.envelopes == [["ana@example.test", "bo@example.test", "secret@example.test"]]


@pytest.mark.req("Comm.1")
@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "not an address"},
        {"to": "a@b\r\nBcc: evil@evil.test"},
        {"to": "Ana <ana@example.test>"},
        {"to": ["a@example.test", "b@evil.test"]},
        {"to": "a@sub.evil.test"},
        {"subject": "hi\r\nBcc: x@y.test"},
        {"subject": "hi\0"},
        {"cc": "a,b@example.test"},
        {"to": [f"a{n}@example.test" for n in range(21)]},
        {"attachments": ["../../etc/passwd"]},
    ],
)
async def test_what_is_refused_before_anything_is_sent(post: Post, tmp_path: Path, arguments: JsonObject) -> None:
    assert tools_of(post, tmp_path).validate(call_of("mail.send", {**PLAIN, **arguments}))
    assert post.messages() == []


async def test_files_of_the_workspace_go_along(post: Post, tmp_path: Path) -> None:
    tools = tools_of(post, tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/größe.txt").write_text("line one\n")
    (tmp_path / "blob.bin").write_bytes(bytes(range(256)) * 40)
    ctx = context(workdir=tmp_path)
    shot = ctx.artifact("shot.png", b"\x89PNG").handle()
    call = call_of("mail.send", {**PLAIN, "attachments": ["notes/größe.txt", "blob.bin", shot]}, key="k2")
    assert tools.validate(call) == []
    await tools.execute(call, ctx)
    (message,) = post.messages()
    picture, text, blob = message.iter_attachments()
    assert (picture.get_filename(), picture.get_content()) == ("shot.png", b"\x89PNG")
    assert (text.get_filename(), text.get_content().splitlines()) == ("größe.txt", ["line one"])
    assert (blob.get_filename(), blob.get_content()) == ("blob.bin", bytes(range(256)) * 40)
    (tmp_path / "large").write_bytes(b"x" * (11 << 20))
    (tmp_path / "key").write_text("-----BEGIN RSA PRIVATE KEY-----")
    for path, code in (("large", "limit_bytes"), ("key", "mail_content"), ("nowhere", "os_missing")):
        with pytest.raises((ToolError, OSError)) as refused:
            await tools.execute(call_of("mail.send", {**PLAIN, "attachments": [path]}), context(workdir=tmp_path))
        assert getattr(refused.value, "code", "os_missing") == code
    assert len(post.messages()) == 1


@pytest.mark.req("Comm.4")
async def test_what_may_not_go_out(post: Post, tmp_path: Path) -> None:
    tools = tools_of(post, tmp_path, redactor=Redactor({"mine": "hunter2-correct"}))
    for text in ("-----BEGIN RSA PRIVATE KEY-----\nMII", "the password is hunter2-correct", "aHVudGVyMi1jb3JyZWN0"):
        with pytest.raises(Denied) as refused:
            await tools.execute(call_of("mail.send", {**PLAIN, "text": text}), context())
        assert refused.value.code == "mail_content"
    assert post.messages() == []


@pytest.mark.req("6.2", "Comm.2")
@pytest.mark.parametrize(
    ("code", "said", "expected", "category"),
    [
        (421, b"busy", "smtp_421", "transient"),
        (450, b"later", "smtp_450", "transient"),
        (550, b"no such user", "mail_address", "configuration"),
        (535, b"bad password", "mail_auth", "permission"),
        (550, b"5.7.1 refused by policy", "mail_policy", "permission"),
        (552, b"too large", "mail_too_large", "resource"),
        (554, b"no", "mail_rejected", "logic"),
    ],
)
def test_what_answers_mean(code: int, said: bytes, expected: str, category: str) -> None:
    error = judged(code, said, "it")
    assert (error.code, error.category, error.effect_state) == (expected, category, "none")


async def test_recipients_refused_in_part(post: Post, tmp_path: Path) -> None:
    call = call_of("mail.send", {**PLAIN, "to": ["ana@example.test", "nobody@example.test"]})
    told: Any = await tools_of(post, tmp_path).execute(call, context())
    assert told["accepted"] == ["ana@example.test"]
    assert told["refused"] == [{"address": "nobody@example.test", "why": "550 no such user"}]
    with pytest.raises(ToolError) as refused:
        await tools_of(post, tmp_path).execute(
            call_of("mail.send", {**PLAIN, "to": "nobody@example.test"}, key="another"), context()
        )
    assert refused.value.code == "mail_address"


async def test_the_probe(post: Post, tmp_path: Path) -> None:
    tools, call = tools_of(post, tmp_path), call_of("mail.send", PLAIN, key="p1")
    assert (await tools.probe(call)).result == "not_done"
    assert tools._settings is not None
    mark(tools._settings, call)
    assert (await tools.probe(call)).result == "not_done"
    assert (await tools_of(post, tmp_path, lookup=None).probe(call)).result == "unknown"
    await tools.execute(call, context())
    seen = await tools.probe(call)
    assert isinstance(seen.output, dict)
    assert (seen.result, seen.output["message_id"]) == ("done", "<p1@example.test>")


@pytest.mark.req("Comm.2")
async def test_busy_then_taken(post: Post, tmp_path: Path) -> None:
    post.answers = ["451 later", "250 taken"]
    plan = Plan("mailing")
    plan.step("send", "mail.send", PLAIN)
    config: dict[str, JsonValue] = {**config_of(post), "store": str(tmp_path / "s.db")}
    async with TestEngine(config=config) as engine:
        task = await engine.start(plan)
        assert [one.status for one in await ends(engine, task)] == ["completed"]
    assert len(post.messages()) == 1


@pytest.mark.req("Comm.4", "W.2")
async def test_it_asks_first(post: Post, tmp_path: Path) -> None:
    plan = Plan("mailing")
    plan.step("send", "mail.send", PLAIN)
    config: dict[str, JsonValue] = {**config_of(post), "store": str(tmp_path / "s.db")}
    del config["policy.approve"]
    async with TestEngine(config=config) as engine:
        task = await engine.start(plan)
        assert (await task.result(on_pause="return")).status == "paused"
        assert post.messages() == []
        await engine.inbox.only().approve()
        assert (await task.result()).status == "completed"
    assert len(post.messages()) == 1


PROGRAM = """
import asyncio, sys
from everstep import Engine, Plan
plan = Plan("mailing")
plan.step("send", "mail.send", {"to": "ana@example.test", "subject": "once", "text": "only once"})
async def main():
    async with Engine(config={"store": sys.argv[1], "mail.server": sys.argv[2], "mail.sender": "me@example.test",
                              "mail.lookup": sys.argv[3], "policy.approve": {"mail.send": False}}) as engine:
        print((await engine.run(plan, key="one", on_pause="return")).status, flush=True)
asyncio.run(main())
"""


@pytest.mark.req("Comm.2")
@pytest.mark.parametrize(("lookup", "ends"), [(True, "completed"), (False, "paused")])
def test_killed_between_acceptance_and_record(post: Post, tmp_path: Path, lookup: bool, ends: str) -> None:
    """The server has the message, we have no answer: it is looked up, or asked about, and never sent twice."""
    place = str(post.folder) if lookup else ""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "s.db"), f"smtp://127.0.0.1:{post.port}", place]
    taken = threading.Event()
    with closing(post.box):
        first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def kill() -> None:
            os.kill(first.pid, signal.SIGKILL)
            taken.set()

        post.after = kill
        assert taken.wait(60)
        first.communicate()
        post.after = None
        assert len(post.messages()) == 1
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert second.stdout.strip() == ends, second.stderr
    assert len(post.messages()) == 1


def test_servers() -> None:
    assert server_of("smtp://mail.example.test") == ("mail.example.test", 587, False)
    assert server_of("smtps://mail.example.test") == ("mail.example.test", 465, True)
    assert server_of("smtp://127.0.0.1:25") == ("127.0.0.1", 25, False)
    with pytest.raises(ToolError):
        server_of("mail.example.test")
