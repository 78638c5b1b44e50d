"""The tool suite over families that reach out, each against its real counterpart: servers, programs, a browser."""

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from everstep.adapters.secrets import KnownSecrets
from everstep.bootstrap import adapters_of
from everstep.ports.tool import ToolAdapter
from everstep.settings import load_settings
from everstep.testing import Sample, check_adapter
from everstep.testing.chat import says
from everstep.testing.conformance import tool_calls, tool_words
from everstep.testing.context import call_of, context
from everstep.testing.rig import HttpRig, answer
from everstep.tools import JsonObject, JsonValue
from everstep.wire.values import Codec
from tests.unit.adapters.post import at_work

REMOTE = Path(__file__).parents[1] / "unit/adapters/remote"
WHOLE = os.environ.get("EVERSTEP_TEST_WHOLE") == "1"
"""The long variant, for `make torture`."""
SECRETS = {"key": "canary-of-the-operator-51d2"}


@pytest.fixture(autouse=True)
def a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a browser takes to start is not what is tried here."""
    monkeypatch.setattr(tool_words, "HEALTH_S", 120.0)
    monkeypatch.setattr(tool_calls, "GRACE_S", 120.0)


@asynccontextmanager
async def family(name: str, config: JsonObject, secrets: Mapping[str, str] = SECRETS) -> AsyncIterator[ToolAdapter]:
    """One family as a project's configuration makes it."""
    settings = load_settings({"containment.uid_base": 0, **config}, env={})
    known = KnownSecrets(secrets, settings.grants)
    every = adapters_of(settings, (), Codec(), known)
    yield next(one for one in every if _serves(one, name))
    for one in every:  # some share a client
        await one.close()


def _serves(adapter: ToolAdapter, name: str) -> bool:
    return any(spec.name.startswith(f"{name}.") for spec in adapter.tools())


def fits(tool: str, **arguments: JsonValue) -> Sample:
    return Sample(tool=tool, arguments=arguments)


def wrong(tool: str, **arguments: JsonValue) -> Sample:
    return Sample(tool=tool, arguments=arguments, fits=False)


async def keeps_its_word(adapter: ToolAdapter, *samples: Sample, brief: bool = False) -> None:
    """Every check of the suite, and each of them passed."""
    findings = await check_adapter(adapter, samples, secrets=SECRETS, brief=brief and not WHOLE)
    assert [str(finding) for finding in findings if finding.status != "passed"] == []
    assert len(findings) == 20


@pytest.mark.req("TU.2")
async def test_webhooks() -> None:
    async with HttpRig() as rig:
        rig.on("/hook", answer(200, b"thanks"))
        targets: JsonObject = {"crm": {"url": rig.url("/hook"), "secrets": ["key"], "drops_repeats": True}}
        targets["shop"] = {"url": rig.url("/hook"), "secrets": ["key"]}
        async with family("webhook", {"webhook.targets": targets}) as tools:
            good = [fits("webhook.send", target=name, event="made", data={"n": 1}) for name in ("crm", "shop")]
            bad = wrong("webhook.send", target="nobody", event="made", data={})
            await keeps_its_word(tools, *good, bad)


@pytest.mark.req("TU.2")
async def test_models() -> None:
    async with HttpRig() as rig:
        rig.on("/v1/chat/completions", says("Hello."))
        rig.on("/v1/models", answer(200, {"data": []}))
        endpoint: JsonObject = {"url": rig.url("/v1"), "model": "small", "auth": "key"}
        async with family("llm", {"llm.endpoints": {"local": endpoint}}) as tools:
            await keeps_its_word(tools, fits("llm.chat", prompt="Hi"), wrong("llm.chat", prompt="Hi", endpoint="none"))


@pytest.mark.req("TU.2")
async def test_mail(tmp_path: Path) -> None:
    with at_work(tmp_path / "box") as post:
        server = f"smtp://127.0.0.1:{post.port}"
        config: JsonObject = {"mail": {"server": server, "sender": "me@example.test", "lookup": str(post.folder)}}
        async with family("mail", {**config, "store": str(tmp_path / "s.db")}) as tools:
            good = fits("mail.send", to="ana@example.test", subject="Hi", text="Hello")
            bad = wrong("mail.send", to="ana@example.test", subject="a\r\nBcc: b@c.test", text="x")
            await keeps_its_word(tools, good, bad)


@pytest.mark.req("TU.2")
async def test_programs() -> None:
    commands: JsonObject = {
        "echo": {"program": "/bin/echo", "arguments": ["[a-z]+"], "effect": "pure"},
        "once": {"program": "/bin/echo", "arguments": ["[a-z]+"]},
    }
    async with family("shell", {"shell.commands": commands, "containment.require": {"shell.run": "limited"}}) as tools:
        good = [fits("shell.run", argv=[name, "hello"]) for name in commands]
        await keeps_its_word(
            tools, *good, wrong("shell.run", argv=["rm"]), wrong("shell.run", argv=["echo", "a;b"]), brief=True
        )


@pytest.mark.req("TU.2")
async def test_tools_of_a_server(tmp_path: Path) -> None:
    server: JsonObject = {
        "command": [sys.executable, str(REMOTE / "hostile_server.py")],
        "tools": ["echo"],
        "effects": {"echo": "pure"},
        "env": {"TOKEN": "secret:key"},
    }
    config: JsonObject = {"mcp.servers": {"other": server}, "store": str(tmp_path / "s.db")}
    config["containment.require"] = {"mcp.other": "limited"}
    async with family("mcp", config) as tools:  # the first contact
        await tools.execute(call_of("mcp.other.echo", {"text": "hi"}), context())
    async with family("mcp", config) as tools:
        await keeps_its_word(tools, fits("mcp.other.echo", text="hi"), wrong("mcp.other.echo", text=1))


@pytest.mark.req("TU.2")
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # what a cut-off call leaves to Playwright
async def test_a_browser() -> None:
    async with HttpRig() as rig:
        rig.on("/page", answer(200, b"<title>Hi</title><p>there", Content_Type="text/html"))
        config: JsonObject = {
            "browser.enabled": True,
            "containment.require": {"browser.read": "limited"},
            "policy.networks": [f"127.0.0.1/32:{rig.port}"],
        }
        with TemporaryDirectory() as folder:
            async with family("browser", {**config, "store": f"{folder}/s.db"}) as tools:
                good = fits("browser.read", url=rig.url("/page"))
                await keeps_its_word(tools, good, wrong("browser.read", url="file:///etc/passwd"), brief=True)
