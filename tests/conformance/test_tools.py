"""The tool suite over every adapter we ship, over one of another package, and over ones that break their word."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import psutil
import pytest

from everstep import Ctx, Impossible
from everstep.adapters import plugins
from everstep.adapters.threads import Threads
from everstep.adapters.tools.file import FileTools
from everstep.adapters.tools.flow import FlowTools
from everstep.adapters.tools.text import text_tools
from everstep.adapters.tools.values import json_tools
from everstep.bootstrap import adapters_of
from everstep.domain.check_tools import SWITCHES
from everstep.domain.errors import SettingsError
from everstep.ports.adapter import ToolAdapter
from everstep.settings import load_settings
from everstep.testing import Sample, check_adapter, sim_tools
from everstep.testing.conformance import tool_calls, tool_time
from everstep.testing.conformance.sample import Bench, below
from everstep.testing.conformance.tool import failed
from everstep.tools import Call, Effect, JsonObject, JsonValue, ToolSpec
from everstep.wire.values import Codec

WEATHER = Path(__file__).parents[2] / "examples/weather_tools"


def sample(tool: str, **arguments: JsonValue) -> Sample:
    return Sample(tool=tool, arguments={name.rstrip("_"): value for name, value in arguments.items()})


def wrong(tool: str, **arguments: JsonValue) -> Sample:
    return Sample(tool=tool, arguments=arguments, fits=False)


BUILT_IN: dict[str, tuple[Callable[[], ToolAdapter], Sequence[Sample]]] = {
    "text": (
        text_tools,
        [
            sample("text.join", texts=["a", "b"]),
            sample("text.split", text="a\nb"),
            sample("text.diff", old="a", new="b"),
            sample("text.hash", text="a"),
            sample("text.summarize", texts=["One. Two."]),
            wrong("text.join", texts="a"),
            wrong("text.truncate", text="a"),
        ],
    ),
    "json": (
        lambda: json_tools(Codec()),
        [sample("json.parse", text="[1]"), sample("json.merge", target={"a": 1}, patch={}), wrong("json.parse")],
    ),
    "flow": (lambda: FlowTools(Codec()), [sample("wait", for_="1s"), wrong("wait")]),
    "file": (
        lambda: FileTools(Threads()),
        [
            sample("file.write", path="notes/a.txt", text="hello"),
            sample("file.read", path="notes/a.txt"),
            sample("file.list"),
            sample("file.stat", path="notes"),
            wrong("file.write", path="../a", text="x"),
            wrong("file.read", path="/etc/passwd"),
        ],
    ),
}


@pytest.mark.req("DoD.7", "6.1")
def test_there_is_a_family_for_everything_once_it_is_configured(tmp_path: Path) -> None:
    """And each keeps to the contract in what it says of itself (its calls are tried beside its own tests)."""
    config: JsonObject = {
        "store": str(tmp_path / "s.db"),
        "browser.enabled": True,
        "mail": {"server": "smtp://127.0.0.1:25", "sender": "me@example.test"},
        "search.providers": {"main": "http://127.0.0.1/search"},
        "shell.commands": {"true": {"program": "/bin/true"}},
        "llm.endpoints": {"local": {"url": "http://127.0.0.1/v1", "model": "m"}},
        "webhook.targets": {"shop": {"url": "http://127.0.0.1/hook"}},
        "mcp.servers": {"time": {"command": ["/bin/true"], "tools": ["now"]}},
    }
    adapters = adapters_of(load_settings(config, env={}), (), Codec())
    names = {spec.name for adapter in adapters for spec in adapter.tools()}
    families = {name.partition(".")[0] for name in names}
    assert families == {
        "ask", "browser", "file", "http", "json", "llm", "mail", "mcp", "plan", "resource", "search", "shell", "text",
        "wait", "webhook",
    }  # fmt: skip
    always = {spec.name for adapter in adapters_of(load_settings({}, env={}), (), Codec()) for spec in adapter.tools()}
    off = {name for name in names - always if not name.startswith("mcp.")}
    assert {*SWITCHES} == off, "each of them is told how to be had"


@pytest.mark.req("6.1", "TU.2", "T.1", "T.2", "T.3", "T.4")
@pytest.mark.parametrize("family", BUILT_IN)
async def test_built_in_families(family: str) -> None:
    make, samples = BUILT_IN[family]
    findings = await check_adapter(make(), samples)
    assert failed(findings) == []
    assert all(finding.status == "passed" for finding in findings)


async def test_function_tools_without_samples_are_judged_by_their_words() -> None:
    adapters = adapters_of(load_settings({}, env={}), sim_tools(), Codec())[-len(sim_tools()) :]
    for adapter in adapters:
        findings = await check_adapter(adapter)
        assert failed(findings) == []
        assert {finding.status for finding in findings} == {"passed", "not_run"}


@pytest.mark.req("6.1", "WF-5")
async def test_a_family_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """As installed: found by its entry point, imported only because the configuration names it."""
    monkeypatch.syspath_prepend(str(WEATHER))
    entry = EntryPoint(name="weather", value="weather:Weather", group=plugins.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry])
    settings = load_settings({"tools": ["weather"]}, env={})
    weather = adapters_of(settings, (), Codec())[-1]
    assert [spec.name for spec in weather.tools()] == ["weather.now"]
    assert [str(finding) for finding in await check_adapter(weather) if finding.status != "passed"] == []


async def test_two_owners_of_a_prefix_and_strangers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(WEATHER))
    one, two = (EntryPoint(name="weather", value=value, group=plugins.GROUP) for value in ("weather:Weather", "b:B"))
    settings = load_settings({"tools": ["weather"]}, env={})
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [one, two])
    with pytest.raises(SettingsError, match="two packages own 'weather'"):
        adapters_of(settings, (), Codec())
    stranger = EntryPoint(name="acme", value="weather:Weather", group=plugins.GROUP)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [stranger])
    with pytest.raises(SettingsError, match=r"owns 'acme\.\*', but serves 'weather.now'"):
        adapters_of(load_settings({"tools": ["acme"]}, env={}), (), Codec())


async def test_one_object_of_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(WEATHER))
    settings = load_settings({"tools": ["weather:Weather"]}, env={})
    assert [spec.name for spec in adapters_of(settings, (), Codec())[-1].tools()] == ["weather.now"]
    with pytest.raises(SettingsError, match="'weather' has no 'Wether'"):
        adapters_of(load_settings({"tools": ["weather:Wether"]}, env={}), (), Codec())


# --- adapters that break their word ---


class Broken(ToolAdapter):
    """One that does what its name says."""

    effect = Effect.PURE
    schema: ClassVar[JsonObject] = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
    }
    output: ClassVar[JsonObject | None] = None

    def tools(self) -> Sequence[ToolSpec]:
        return [
            ToolSpec(
                name="broken.tool",
                version="1",
                title="Broken",
                description="Breaks its word.",
                input_schema=self.schema,
                output_schema=self.output,
                effect=self.effect,
                undoable=True,
            )
        ]

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        return {}

    async def undo(self, call: Call, output: JsonValue, ctx: Ctx) -> None:
        """Nothing to take back."""


class OpenArguments(Broken):
    schema: ClassVar[JsonObject] = {"type": "object"}


class ReadsInValidate(Broken):
    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        Path(__file__).read_text()
        return ()


class WritesThoughPure(Broken):
    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        (ctx.workdir / "trace").write_text(call.idempotency_key)
        return {}


class GrowsWhenRepeated(Broken):
    effect = Effect.IDEMPOTENT

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        with (ctx.workdir / "log").open("a") as log:
            log.write("x")
        return {}


class WrongOutput(Broken):
    output: ClassVar[JsonObject | None] = {"type": "array"}


class NotJsonOutput(Broken):
    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        return {"n": float("nan")}


class IgnoresCancel(Broken):
    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        for _ in range(40):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
        return {}


class FailsWhenRepeated(Broken):
    effect = Effect.IDEMPOTENT

    def __init__(self) -> None:
        self.known: set[str] = set()

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        if call.idempotency_key in self.known:
            raise Impossible("seen before")
        self.known.add(call.idempotency_key)
        return {}


class StartsOver(Broken):
    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        for n in range(3):
            await ctx.checkpoint(n)
        return {}


class LeavesAProcess(Broken):
    def __init__(self) -> None:
        self.left: list[asyncio.subprocess.Process] = []

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        self.left.append(await asyncio.create_subprocess_exec("sleep", "3"))
        return {}


class RaisesInClassify(Broken):
    def classify(self, exc: Exception) -> None:
        raise KeyError(exc)


class TakesAnything(Broken):
    pass


class KeepsFilesOpen(Broken):
    def __init__(self) -> None:
        self.kept: list[object] = []

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        self.kept.append(Path(__file__).open())  # noqa: SIM115, ASYNC230
        return {}


@pytest.mark.req("6.1")
@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (OpenArguments, "K1"),
        (ReadsInValidate, "K2"),
        (TakesAnything, "K4"),
        (WrongOutput, "K5"),
        (NotJsonOutput, "K5"),
        (RaisesInClassify, "K6"),
        (WritesThoughPure, "K10"),
        (GrowsWhenRepeated, "K10"),
        (KeepsFilesOpen, "K18"),
        (FailsWhenRepeated, "K12"),
        (StartsOver, "K13"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
async def test_a_broken_one_is_named(broken: type[Broken], check: str) -> None:
    cases = [sample("broken.tool", n=1), *([wrong("broken.tool", n=2)] if broken is TakesAnything else [])]
    adapter = broken()
    found = {finding.check: finding for finding in await check_adapter(adapter, cases)}
    assert found[check].status == "failed"
    for file in getattr(adapter, "kept", ()):
        file.close()


async def test_one_that_leaves_a_process_is_named(tmp_path: Path) -> None:
    broken = LeavesAProcess()
    bench = Bench(adapter=broken, samples=(sample("broken.tool", n=1),), folder=tmp_path)
    (problem, *_) = await tool_calls.cancelled(bench)
    assert "a process is left" in problem
    for process in broken.left:
        process.kill()
        await process.wait()


def test_what_others_start_meanwhile_is_no_business_of_an_adapter(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys; sys.stdin.readline(); child = subprocess.Popen(['sleep', '600']); print(flush=True)"
    )
    words = [sys.executable, "-c", f"{program}; child.wait()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stranger:
        assert stranger.stdin is not None
        assert stranger.stdout is not None
        bench = Bench(adapter=LeavesAProcess(), samples=(), folder=tmp_path)
        (known,) = [one for one in psutil.Process().children() if one.pid == stranger.pid]
        stranger.stdin.write("now\n")
        stranger.stdin.flush()
        stranger.stdout.readline()
        started = {one.pid for one in known.children()}
        assert started
        assert started <= below()
        assert not started & below(bench.strangers)
        for pid in started:
            os.kill(pid, signal.SIGKILL)


async def test_one_that_ignores_cancellation_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_calls, "GRACE_S", 0.1)
    bench = Bench(adapter=IgnoresCancel(), samples=(sample("broken.tool", n=1),), folder=Path())
    (problem, *_) = await tool_calls.cancelled(bench)
    assert "goes on" in problem
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        await task


async def test_one_that_goes_on_when_its_time_is_up_is_named() -> None:
    bench = Bench(adapter=IgnoresCancel(), samples=(sample("broken.tool", n=1),), folder=Path(), grace_s=0.1)
    assert "goes on" in (await tool_time.timed_out(bench))[0]


@pytest.mark.req("6.1")
def test_at_the_command_line(tmp_path: Path) -> None:
    """`everstep tools check` names what is wrong, and exits 1."""
    (tmp_path / "mine.py").write_text((WEATHER / "weather.py").read_text())
    (tmp_path / "everstep.toml").write_text('tools = ["mine:Weather"]\n')
    command = [sys.executable, "-m", "everstep", "tools", "check", "weather.now"]
    good = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert good.returncode == 0, good.stderr
    assert "K5 output fits its schema passed" in good.stdout
    (tmp_path / "mine.py").write_text((WEATHER / "weather.py").read_text().replace('title="The weather"', 'title=""'))
    bad = subprocess.run(
        [*command[:-1], "--all"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert bad.returncode == 1
    assert "weather.now: it has no title" in bad.stdout
    assert bad.stdout.count(" failed") == 1
