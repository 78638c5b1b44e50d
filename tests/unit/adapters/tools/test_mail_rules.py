"""What mail is held to: who may get it and how often, what it may hold, over which wire, and when it counts as sent."""

import asyncio
import email.message
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from everstep import Plan, PlanError
from everstep.adapters.mail import marks
from everstep.adapters.mail.content import denied, doubtful
from everstep.adapters.net import Client
from everstep.adapters.net.guard import Guard
from everstep.adapters.threads import Threads
from everstep.adapters.tools.mail import MailTools
from everstep.domain.errors import SettingsError
from everstep.domain.redact import Redactor
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Denied, ToolError
from everstep.testing import TestEngine
from tests.ports import free_port
from tests.unit.adapters.post import PLAIN, Post, at_work, config_of, tools_of
from tests.unit.contexts import call_of, context


def to(address: str, **more: JsonValue) -> JsonObject:
    return {**PLAIN, "to": address, **more}


async def arrived(post: Post, count: int) -> None:
    """In real time: the server is a real one."""
    async with asyncio.timeout(60):
        while len(post.envelopes) < count:  # noqa: ASYNC110 -- it runs in a thread of its own
            await asyncio.sleep(0.01)


# --- formatted and validated ---


@pytest.mark.req("Comm.1")
async def test_a_variable_without_a_value_sends_nothing(post: Post, tmp_path: Path) -> None:
    config: dict[str, JsonValue] = {**config_of(post), "store": str(tmp_path / "s.db")}
    async with TestEngine(config=config) as engine:
        file = tmp_path / "mail.plan.yaml"
        file.write_text(
            "name: mailing\nsteps:\n  - id: send\n    tool: mail.send\n"
            "    with: {to: ana@example.test, subject: hi, text: 'Dear ${inputs.nobody}'}\n"
        )
        with pytest.raises(PlanError):
            await engine.start(file)
        plan = Plan("mailing")
        who = plan.step("who", "json.parse", {"text": "{}"})
        plan.step("send", "mail.send", to("ana@example.test", text=f"Dear {who.value.name}"))
        task = await engine.start(plan)
        assert (await task.result(on_pause="return")).status == "paused"
        assert engine.inbox.only().type == "unresolvableParams"
    assert post.asked == 0


@pytest.mark.req("Comm.1")
async def test_a_bad_address_is_refused_with_the_plan(post: Post, tmp_path: Path) -> None:
    plan = Plan("mailing")
    who = plan.step("who", "json.parse", {"text": '{"at": "a@b\\r\\nBcc: c@d"}'})
    plan.step("send", "mail.send", to(f"{who.value.at}"))
    config: dict[str, JsonValue] = {**config_of(post), "store": str(tmp_path / "s.db")}
    async with TestEngine(config=config) as engine:
        result = await (await engine.start(plan)).result(on_pause="return")
    assert result.status in ("failed", "paused")
    assert post.asked == 0


# --- confirmation and retry ---


@pytest.mark.req("Comm.2")
async def test_a_recipient_that_does_not_exist_is_tried_once(post: Post, tmp_path: Path) -> None:
    plan = Plan("mailing")
    plan.step("send", "mail.send", to("nobody@example.test"))
    config: dict[str, JsonValue] = {**config_of(post), "store": str(tmp_path / "s.db")}
    async with TestEngine(config=config) as engine:
        result = await (await engine.start(plan)).result()
    assert result.status == "failed"
    assert post.asked == 1


@pytest.mark.req("Comm.2")
async def test_what_the_server_said_is_known_without_looking(post: Post, tmp_path: Path) -> None:
    tools, call = tools_of(post, tmp_path, lookup=None), call_of("mail.send", PLAIN, key="k")
    told = await tools.execute(call, context())
    seen = await tools.probe(call)
    assert (seen.result, seen.output) == ("done", told)
    assert await tools.execute(call, context()) == told
    assert len(post.messages()) == 1


@pytest.mark.req("Comm.2")
async def test_delivered_means_seen_where_mail_arrives(
    post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools, call = tools_of(post, tmp_path, confirm="delivered"), call_of("mail.send", PLAIN, key="k1")
    told: Any = await tools.execute(call, context())
    assert told["delivery"] == "delivered"
    (tmp_path / "elsewhere").mkdir()
    lost = tools_of(post, tmp_path, confirm="delivered", lookup=tmp_path / "elsewhere")
    at_once = context()
    monkeypatch.setattr(at_once, "remaining", lambda: 1.0)
    call = call_of("mail.send", PLAIN, key="k2")
    for _ in range(2):  # a second try looks again and sends nothing
        with pytest.raises(ToolError) as refused:
            await lost.execute(call, at_once)
        assert (refused.value.code, refused.value.effect_state) == ("mail_unconfirmed", "made")
    assert len(post.messages()) == 2
    report = email.message.EmailMessage()
    report["Message-ID"] = "<report@example.test>"
    report.set_content("Message-ID: <k2@example.test>")
    report.replace_header("Content-Type", "multipart/report; boundary=b")
    (tmp_path / "elsewhere/new").mkdir()
    (tmp_path / "elsewhere/new/1").write_bytes(report.as_bytes())
    told = await lost.execute(call, at_once)
    assert told["delivery"] == "bounced"


@pytest.mark.req("Comm.2")
async def test_that_nobody_can_say_whether_it_arrived_says_nothing_of_a_message(
    post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has taken it; the place where mail arrives is away, and that is no reason to send it again."""
    settings = tools_of(post, tmp_path, confirm="delivered", lookup=f"http://127.0.0.1:{free_port()}/{{message_id}}")
    tools = MailTools(settings._account, Threads(), Redactor(), Client(guard=Guard()))
    at_once = context()
    monkeypatch.setattr(at_once, "remaining", lambda: 1.0)
    with pytest.raises(ToolError) as refused:
        await tools.execute(call_of("mail.send", PLAIN, key="k1"), at_once)
    assert (refused.value.code, refused.value.effect_state) == ("mail_unconfirmed", "made")
    assert "refuses connections" in str(refused.value)
    assert len(post.messages()) == 1


async def test_a_place_where_mail_arrives_may_be_a_page(post: Post, tmp_path: Path) -> None:
    asked: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split()[1].decode())
        status = b"200 OK" if "k1" in asked[-1] else b"404 Not Found"
        writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mail/{{message_id}}"
    settings = tools_of(post, tmp_path, lookup=url)._account
    tools = MailTools(settings, Threads(), Redactor(), Client(guard=Guard()))
    call = call_of("mail.send", PLAIN, key="k1")
    marks.mark(settings, call)
    seen = await tools.probe(call)
    assert isinstance(seen.output, dict)
    assert (seen.result, seen.output["delivery"], asked) == ("done", "delivered", ["/mail/k1%40example.test"])
    server.close()


@pytest.mark.parametrize(
    "said", [{"mail.confirm": "delivered"}, {"mail.lookup": "http://127.0.0.1/x"}, {"mail.lookup": "http://a b/{x}"}]
)
async def test_a_confirmation_that_nobody_could_give_is_refused(said: dict[str, JsonValue], tmp_path: Path) -> None:
    config: dict[str, JsonValue] = {"mail.server": "smtp://127.0.0.1:25", "mail.sender": "me@example.test", **said}
    with pytest.raises(SettingsError):
        await TestEngine(config={**config, "store": str(tmp_path / "s.db")}).open()


def test_old_marks_go(post: Post, tmp_path: Path) -> None:
    settings, call = tools_of(post, tmp_path)._account, call_of("mail.send", PLAIN, key="k")
    marks.mark(settings, call)
    made = marks.mark_of(settings, call).stat().st_mtime
    marks.forget_old(settings, now=made + marks.KEPT_S - 1)
    assert marks.mark_of(settings, call).exists()
    marks.forget_old(settings, now=made + marks.KEPT_S + 1)
    assert not marks.mark_of(settings, call).exists()


# --- rates ---


def twice(first: str, second: str) -> Plan:
    plan = Plan("mailing")
    one = plan.step("one", "mail.send", to(first))
    plan.step("two", "mail.send", to(second), needs=[one])
    return plan


@pytest.mark.req("Comm.3")
async def test_rates_per_account_and_recipient_hold_over_restarts(post: Post, tmp_path: Path) -> None:
    config: dict[str, JsonValue] = {
        **config_of(post),
        "store": str(tmp_path / "s.db"),
        "rates": {"mail": "1/2s", "mail.to": "1/60s", "mail.to.boss@example.test": "1/90s"},
    }
    async with TestEngine(config=config) as engine:
        task = await engine.start(twice("ana@example.test", "bo@example.test"))
        began = engine.clock.now()
        await arrived(post, 1)
        waits = await waiting(task, "two")
        assert (waits["kind"], waits["until"]) == ("rate", _at(began + 2_000))
        await engine.clock.advance("2s")
        await arrived(post, 2)
        assert (await task.result()).status == "completed"
        await engine.crash(down="1s")
        again = await engine.start(twice("ANA@example.test", "boss@example.test"))
        waits = await waiting(again, "one")
        assert waits["until"] == _at(began + 60_000)  # counted before the crash, in whatever case it is written
        await engine.clock.advance("56s")
        assert len(post.envelopes) == 2
        await engine.clock.advance("2s")
        await arrived(post, 3)
        await engine.clock.advance("2s")
        await arrived(post, 4)
        assert (await again.result()).status == "completed"
        last = await engine.start(twice("boss@example.test", "cy@example.test"))
        waits = await waiting(last, "one")
        assert waits["until"] > _at(began + 150_000)


async def waiting(task: Any, step: str) -> Any:
    async with asyncio.timeout(60):
        events = (event async for event in task.events() if event.type == "step.waiting" and event.step == step)
        return (await anext(events)).data["waiting_on"]


def _at(instant: int) -> str:
    from everstep.domain.ids import Instant
    from everstep.domain.scope import rfc3339

    return rfc3339(Instant(instant))


# --- the wire ---


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(words, cwd=folder, capture_output=True, check=True)
    return folder


def shown(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return context


@pytest.mark.req("Comm.1")
@pytest.mark.parametrize("encrypted", [True, False], ids=["tls", "starttls"])
async def test_the_wire_is_encrypted_and_the_server_is_the_one_it_says(
    certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encrypted: bool
) -> None:
    shows = shown(certificate)
    how: dict[str, Any] = {"ssl_context": shows} if encrypted else {"tls_context": shows, "require_starttls": True}
    with at_work(tmp_path / "box", "localhost", **how) as post:
        tools = tools_of(post, tmp_path, host="localhost", encrypted=encrypted)
        with pytest.raises(ToolError) as refused:
            await tools.execute(call_of("mail.send", PLAIN), context())
        assert (refused.value.code, refused.value.category) == ("net_tls", "configuration")
        assert post.asked == 0
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
        assert (await tools.health()).status == "healthy"
        await tools.execute(call_of("mail.send", PLAIN), context())
        assert len(post.messages()) == 1


@pytest.mark.req("Comm.1")
async def test_without_encryption_only_to_this_machine(tmp_path: Path) -> None:
    with at_work(tmp_path / "box", "127.0.0.2") as post:
        with pytest.raises(Denied) as refused:
            await tools_of(post, tmp_path, host="127.0.0.2").execute(call_of("mail.send", PLAIN), context())
        assert refused.value.code == "mail_policy"
        assert post.asked == 0


# --- contents ---


@pytest.mark.req("Comm.4")
def test_what_is_found_in_a_text() -> None:
    assert denied("Dear Ana,\n-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl") == "a private key"
    assert denied(f"use ghp_{'a1B2' * 9} please") == "a token of GitHub"
    assert denied("AKIA" + "IOSFODNN7EXAMPLE") == "an access key of AWS"
    assert denied("the meeting is at 10, see https://example.test/a?b=c") is None
    assert doubtful("pay with 4111 1111 1111 1111 please") == ["a card number"]
    assert doubtful("to DE89 3704 0044 0532 0130 00, thanks") == ["a bank account (IBAN)"]
    assert doubtful("the login is Zk3vQ9pXr7TbL2mWc8HdYs5N") == ["what looks like a key or a password"]
    for fine in (
        "order 4111 1111 1111 1112, phone +49 30 1234 5678, 2026-11-16T09:00:00",
        "DE89 3704 0044 0532 0130 01",
        "https://example.test/path/AbcDef123456789012345678901234567890",
        "Donaudampfschifffahrtsgesellschaftskapitaen and antidisestablishmentarianism",
        "0" * 16,
    ):
        assert doubtful(fine) == [], fine


@pytest.mark.req("Comm.4")
async def test_who_is_asked_about_and_why(post: Post, tmp_path: Path) -> None:
    config: dict[str, JsonValue] = {
        **config_of(post),
        "store": str(tmp_path / "s.db"),
        "mail.internal_domains": ["example.test"],
    }
    del config["policy.approve"]
    plan = Plan("mailing", inputs={"to": str, "text": str})
    plan.step("send", "mail.send", {"to": plan.inputs.to, "subject": "s", "text": plan.inputs.text})
    async with TestEngine(config=config) as engine:
        inside = await engine.start(plan, {"to": "ana@eu.example.test", "text": "hello"})
        assert (await inside.result(on_pause="return")).status == "completed"
        for address, text, why in (
            ("ana@elsewhere.test", "hello", "the tool asks before mail.send; cannot be undone"),
            (
                "ana@example.test",
                "4111 1111 1111 1111",
                "the tool asks before mail.send: the message holds a card number; cannot be undone",
            ),
        ):
            task = await engine.start(plan, {"to": address, "text": text})
            assert (await task.result(on_pause="return")).status == "paused"
            pause = engine.inbox.only()
            assert pause.why == why
            await pause.approve()
            await engine.clock.advance("1s")
            assert (await task.result()).status == "completed"
    assert len(post.messages()) == 3
