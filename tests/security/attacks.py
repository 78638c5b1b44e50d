"""Attacks of one kind each, on the control that must hold: what others were broken by, tried on us."""

import json
import tempfile
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from everstep import Plan, ToolError, tool
from everstep.adapters.files import Expected, Workspace
from everstep.adapters.isolation.bounds import Walls
from everstep.adapters.net.guard import Asked, Guard
from everstep.adapters.net.url import parse_url
from everstep.adapters.tools.shell import ShellTools, commands_of
from everstep.domain.redact import Redactor
from everstep.domain.values import JsonValue, NotJson
from everstep.doors.http.gate import Mount
from everstep.errors import EverstepError
from everstep.settings import load_settings
from everstep.testing import TestEngine
from everstep.wire.plan import read_plan
from everstep.wire.values import Codec, loads_strict
from tests.unit.contexts import call_of
from tests.unit.doors.api.window import ECHO
from tests.unit.doors.http.test_gate import greet
from tests.unit.doors.http.visitor import answer_of, visiting

Attack = Callable[[], Awaitable[None]]

LOOPBACK = {"host": "127.0.0.1:7717"}
COMMANDS: dict[str, JsonValue] = {
    "shell.commands": {
        "git": {"program": "/usr/bin/git", "arguments": ["status|log", "--oneline", "[a-z/]+"]},
        "cat": {"program": "/bin/cat", "arguments": ["[a-z]+\\.txt"]},
    }
}


def json_is_refused(*texts: str) -> Attack:
    """What a lenient reader takes, and then hands to an unsafe one."""

    async def attack() -> None:
        for text in texts:
            with pytest.raises(NotJson):
                loads_strict(text)
        with pytest.raises(NotJson):
            Codec().seal("\ud800")

    return attack


def stored_values_stay_data(*values: JsonValue) -> Attack:
    """An envelope that names a constructor, a pickle, a tag: through a task and back, it is the same plain value."""

    async def attack() -> None:
        @tool("echo.back", effect="pure")
        async def back(value: Any) -> dict[str, Any]:
            return {"value": value}

        async with TestEngine([back]) as engine:
            for value in values:
                step: dict[str, JsonValue] = {"id": "a", "tool": "echo.back", "with": {"value": value}}
                plan = Plan.from_dict({"name": "p", "steps": [step], "outputs": {"v": "${a.value}"}})
                result = await (await engine.start(plan)).result()
                assert result.outputs == {"v": value}

    return attack


def keys_are_input(*queries: str) -> Attack:
    """Filter keys and cursors that another one pasted into SQL."""

    async def attack() -> None:
        async with visiting() as visitor:
            for query in queries:
                assert (await visitor.ask("GET", f"/v1/tasks?{query}")).status == 400

    return attack


def nobody_comes_in(*paths: str, method: str = "GET", sent: dict[str, str] | None = None) -> Attack:
    """A way in that looked like one that is open, or that the gate did not stand before."""

    async def attack() -> None:
        async with visiting(real_streams=True, mounts={"/mcp": Mount(app=greet, scope="read")}) as visitor:
            task = (await visitor.good("POST", "/v1/tasks", {"plan": ECHO}))["id"]
            for path in (path.format(task=task) for path in paths):
                answer = await visitor.ask(method, path, token=None, headers=sent)
                assert answer.status in (401, 403, 404, 421), (path, answer)
                knocked = answer_of(await visitor.knock(path, {**LOOPBACK, **(sent or {})}))
                assert knocked.status in (401, 403, 404, 421), (path, knocked)

    return attack


def another_owners_is_unknown(*owners: str) -> Attack:
    """Names that begin or end alike; ids that only contain another one."""

    async def attack() -> None:
        async with visiting() as visitor:
            task = (await visitor.good("POST", "/v1/tasks", {"plan": ECHO}))["id"]
            for owner in owners:
                token = await visitor.issue(owner=owner)
                assert (await visitor.ask("GET", f"/v1/tasks/{task}", token=token)).status == 404
            for said in (f"x{task}", f"{task}x", task.upper(), task.lstrip("t_")):
                assert (await visitor.ask("GET", f"/v1/tasks/{said}")).status == 404

    return attack


def cookies_mean_nothing() -> Attack:
    async def attack() -> None:
        async with visiting() as visitor:
            cookie = {"cookie": f"token={visitor.token}; session={visitor.token}"}
            answer = await visitor.ask("GET", "/v1/tasks", token=None, headers=cookie)
            assert (answer.status, "set-cookie" in answer.headers) == (401, False)

    return attack


def texts_arrive_as_they_are(*texts: str) -> Attack:
    """Expressions of other engines, in data: they reach the tool byte for byte, and nothing reads them."""

    async def attack() -> None:
        seen: list[str] = []

        @tool("echo.hear", effect="pure")
        async def hear(text: str) -> dict[str, str]:
            seen.append(text)
            return {"text": text}

        async with TestEngine([hear]) as engine:
            plan = Plan.from_dict({
                "name": "p", "inputs": {"v": "string"},
                "steps": [{"id": "a", "tool": "echo.hear", "with": {"text": "${inputs.v}"}},
                          {"id": "b", "tool": "echo.hear", "with": {"text": "${a.text}"}}],
            })  # fmt: skip
            for text in texts:
                assert (await (await engine.start(plan, {"v": text})).result()).status == "completed"
        assert seen == [text for text in texts for _ in range(2)]

    return attack


def expressions_are_refused(*bindings: str) -> Attack:
    """What would be code elsewhere is a syntax error here, before anything starts."""

    async def attack() -> None:
        for binding in bindings:
            plan = {"name": "p", "steps": [{"id": "a", "tool": "echo.hear", "with": {"text": binding}}]}
            read = read_plan(json.dumps(plan), syntax="json")
            async with TestEngine() as engine:
                refused = read.plan is None or engine.desk.check(read.plan)
            assert refused, binding

    return attack


def bodies_have_one_reader(*kinds: str) -> Attack:
    async def attack() -> None:
        async with visiting() as visitor:
            for kind in kinds:
                sent = {"content-type": kind}
                answer = await visitor.ask("POST", "/v1/tasks", b'{"plan":{}}', headers=sent)
                assert answer.code == "unsupported_media_type", kind
            for field in ("file", "path", "files", "workspace"):
                assert (await visitor.ask("POST", "/v1/tasks", {field: "/etc/passwd"})).status == 422

    return attack


def hosts_are_checked(*hosts: str, origins: tuple[str, ...] = ()) -> Attack:
    """At our own gate, whatever an SDK does behind it."""

    async def attack() -> None:
        async with visiting(mounts={"/mcp": Mount(app=greet, scope="read")}) as visitor:
            for host in hosts:
                assert (await visitor.ask("POST", "/mcp", {}, headers={"host": host})).status == 421
            for origin in origins:
                assert (await visitor.ask("POST", "/mcp", {}, headers={"origin": origin})).status == 403

    return attack


def no_command_from_a_request(*bodies: dict[str, Any]) -> Attack:
    async def attack() -> None:
        async with visiting() as visitor:
            for body in bodies:
                assert (await visitor.ask("POST", "/v1/tasks", body)).status == 422, body

    return attack


def argv_is_refused(*calls: list[str]) -> Attack:
    """No shell anywhere; each argument has to match the operator's grammar as a whole."""

    async def attack() -> None:
        tools = ShellTools(commands_of(load_settings(COMMANDS, env={})), Walls())
        for argv in calls:
            assert tools.validate(call_of("shell.run", {"argv": [*argv]})), argv
        assert not tools.validate(call_of("shell.run", {"argv": ["git", "log", "--oneline"]}))

    return attack


def paths_are_refused(*paths: str, link: str | None = None) -> Attack:
    async def attack() -> None:
        with tempfile.TemporaryDirectory() as base:
            root = Path(base) / "ws"
            root.mkdir()
            beside = Path(base) / "ws-secret"
            beside.mkdir()
            (beside / "file").write_text("theirs")
            if link is not None:
                (root / link).symlink_to(beside)
            with Workspace(root) as files:
                for path in paths:
                    with pytest.raises((ToolError, OSError)):
                        files.read(path)
                    with pytest.raises((ToolError, OSError)):
                        files.write(path, b"mine", key="k", expected=Expected())
            assert (beside / "file").read_text() == "theirs"

    return attack


def reach(url: str, asked: Asked) -> None:
    parsed = parse_url(url)
    Guard().check(parsed, [ip_address(parsed.host.strip("[]"))], asked)


def urls_are_refused(*urls: str, addresses: tuple[str, ...] = ()) -> Attack:
    """What a plan's data may never reach; every address of a name counts."""

    async def attack() -> None:
        asked = Asked(came_from="${item.url}")
        for url in urls:
            with pytest.raises(ToolError):
                reach(url, asked)
        if addresses:
            with pytest.raises(ToolError):
                Guard().check(parse_url("http://name.test/"), [ip_address(one) for one in addresses], asked)

    return attack


def an_approval_is_for_one_call(change: str) -> Attack:
    """What was allowed is what is called: other arguments, another version, a second time need another word."""

    async def attack() -> None:
        sent: list[str] = []

        def mailer(version: str) -> Any:
            @tool("mail.post", version=version)
            async def post(to: str) -> dict[str, str]:
                sent.append(to)
                raise ToolError("refused at the door", effect_state="made")

            return post

        plan = Plan.from_dict({
            "name": "p",
            "steps": [{"id": "a", "tool": "mail.post", "with": {"to": "ana"}, "approve": "Send?", "on_error": "pause"}],
        })  # fmt: skip
        plan.trusted = True
        engine = TestEngine([mailer("1")])
        await engine.open()
        task = await engine.start(plan)
        await engine.clock.advance("1s")
        if change == "version":
            await task.pause()
            await next(one for one in engine.inbox.all if one.type == "approvalRequired").approve()
            await engine.close()
            engine = TestEngine([mailer("2")], store=engine.store, seed=1)
            await engine.open()
            await (await engine.get(task.id)).resume()
        else:
            await engine.inbox.only().approve()
            await engine.clock.advance("1s")
            pause = engine.inbox.only()
            await (pause.retry() if change == "again" else pause.retry_with({"to": "eve"}))
        await engine.clock.advance("1s")
        assert engine.inbox.only().type == "approvalRequired"
        assert sent == ([] if change == "version" else ["ana"])
        await engine.close()

    return attack


def secrets_are_removed(*texts: str) -> Attack:
    """By value, in whatever a writer gets to see."""

    async def attack() -> None:
        secret = "sk-live-0123456789abcdef"
        redactor = Redactor({"key": secret})
        for text in texts:
            shown = redactor.text(text.format(secret=secret, hex=secret.encode().hex()))
            assert secret not in shown
            assert "[secret:key]" in shown

    return attack


def yaml_is_refused(*texts: str) -> Attack:
    async def attack() -> None:
        for text in texts:
            assert read_plan(text, syntax="yaml").plan is None, text

    return attack


def every_tool_obeys_the_policy() -> Attack:
    """Our own file and HTTP tools are not outside the walls: the same refusals by their own hand."""

    async def attack() -> None:
        with tempfile.TemporaryDirectory() as base:
            async with TestEngine(workspace=Path(base)) as engine:
                calls: list[tuple[str, Any]] = [
                    ("file.read", {"path": "/etc/passwd"}),
                    ("file.write", {"path": "../out", "text": "x"}),
                    ("http.get", {"url": "${inputs.url}"}),
                ]
                for name, arguments in calls:
                    step = {"id": "a", "tool": name, "with": arguments}
                    plan = Plan.from_dict({"name": "p", "inputs": {"url": "string"}, "steps": [step]})
                    try:
                        task = await engine.start(plan, {"url": "http://169.254.169.254/latest/meta-data"})
                    except EverstepError:
                        continue
                    await engine.clock.advance("5s")
                    assert (await task.refresh()).status in ("failed", "paused"), name

    return attack
