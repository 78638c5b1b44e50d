"""`everstep serve` as a process: ready, asked, refused where it must not listen, stopped in order."""

import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.e2e.commands import Project
from tests.postgres import schema

PLAN = (
    "name: nap\nsteps:\n  - {id: a, tool: text.join, with: {texts: [a, b]}}\n  - {id: b, tool: wait, with: {for: 1h}}\n"
)


class Server:
    """A served project."""

    def __init__(self, project: Project, *words: str) -> None:
        self.project = project
        self.process = project.start("serve", "--port", "0", "--json", *words)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        self.ready: dict[str, Any] = json.loads(line)
        self.port = int(self.ready["url"].rpartition(":")[2])
        self.token = (project.path / ".everstep/token").read_text().strip()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        usual = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        connection.request(
            method,
            path,
            None if body is None else json.dumps(body),
            {name: value for name, value in {**usual, **headers}.items() if value},
        )
        reply = connection.getresponse()
        said = reply.read()
        connection.close()
        return reply.status, json.loads(said) if said else None

    def stop(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=30)
        assert "Traceback" not in err, err
        return self.process.returncode, out


@pytest.fixture
def project() -> Iterator[Project]:
    with TemporaryDirectory(prefix="es-") as folder:  # sockets need short paths
        yield Project(Path(folder))


@pytest.fixture
def server(project: Project) -> Iterator[Server]:
    project.write("plans/nap.plan.yaml", PLAN)
    one = Server(project)
    yield one
    if one.process.poll() is None:
        one.process.kill()
    one.process.communicate()


def test_no_tool_may_use_the_door_also_where_any_port_was_free(server: Server) -> None:
    look = {"id": "a", "tool": "http.get", "with": {"url": f"{server.ready['url']}/v1/health"}}
    server.project.write("look.plan.yaml", json.dumps({"name": "look", "steps": [look]}))
    done = server.project.run("run", "look")
    assert done.code == 1
    assert "everstep's own door" in done.out + done.err


def test_ready_asked_and_stopped_in_order(server: Server) -> None:
    store = server.project.path / ".everstep"
    assert set(server.ready) == {"type", "url", "sign_in_url", "pid", "store", "recovered"}
    assert (server.ready["type"], server.ready["pid"]) == ("ready", server.process.pid)
    lock = json.loads((store / "everstep.lock").read_text())
    assert lock["url"] == server.ready["url"]
    assert stat.S_IMODE((store / "token").stat().st_mode) == 0o600
    assert server.ask("GET", "/v1/health", authorization="Bearer nonsense")[0] == 401
    status, task = server.ask("POST", "/v1/tasks", {"plan_name": "nap"})
    assert status == 201
    assert server.ask("GET", f"/v1/tasks/{task['id']}/events?after=0&wait=20")[0] == 200
    seen = server.project.run("show", task["id"], "--json").json
    assert seen["created_by"] == {"kind": "human", "id": "local", "via": "http"}
    code, out = server.stop()
    assert (code, json.loads(out.splitlines()[-1])) == (0, {"type": "result", "ok": True, "exit_code": 0})
    again = server.project.run("show", task["id"], "--json").json
    assert (again["status"], again["worker"]) in {("stalled", None), ("queued", None)}
    assert again["recoveries"] == 0


STUBBORN = """
import asyncio
import pathlib
from everstep import tool

print("loaded")


@tool("my.stubborn")
async def stubborn() -> None:
    'Hears nothing.'
    print("called")
    pathlib.Path("begun").touch()
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
"""


@pytest.mark.req("Dep.4")
def test_a_call_that_does_not_end_does_not_keep_it_from_stopping(project: Project) -> None:
    """Ten seconds is what a stop may take in all; one is enough here. What tools print is not among what it says."""
    project.write("stubborn.py", STUBBORN)
    project.write("plans/stubborn.plan.yaml", "name: stubborn\nsteps: [{id: a, tool: my.stubborn}]\n")
    project.write("everstep.toml", 'tools = ["stubborn"]\n[engine]\nshutdown_grace = "1s"\n')
    server = Server(project)
    task = server.ask("POST", "/v1/tasks", {"plan_name": "stubborn"})[1]["id"]
    while not (project.path / "begun").exists():
        time.sleep(0.01)
    code, out = server.stop()
    assert (code, [json.loads(line)["type"] for line in out.splitlines()]) == (0, ["result"])
    seen = project.run("show", task, "--json").json
    assert (seen["status"], seen["worker"], seen["recoveries"]) == ("stalled", None, 0)


@pytest.mark.req("Dep.1")
def test_tokens_are_made_and_revoked_at_the_command_line(server: Server) -> None:
    project = server.project
    made = project.run("token", "new", "ci", "--owner", "ana", "--scopes", "read")
    assert made.code == 0
    token = made.out.strip()
    assert server.ask("GET", "/v1/owner", authorization=f"Bearer {token}")[1]["owner"] == "ana"
    items = project.run("token", "ls", "--json").json["items"]
    (mine,) = [one for one in items if one["name"] == "ci"]
    assert project.run("token", "set", mine["id"], "--scopes", "read,write", "--json").json["scopes"] == [
        "read",
        "write",
    ]
    mine_too = f"Bearer {token}"
    status, task = server.ask("POST", "/v1/tasks", {"plan_name": "nap"}, authorization=mine_too)
    assert status == 201
    assert project.run("token", "set", mine["id"], "--scopes", "read").code == 0
    assert server.ask("POST", "/v1/tasks", {"plan_name": "nap"}, authorization=mine_too)[0] == 403
    assert server.ask("GET", f"/v1/tasks/{task['id']}", authorization=mine_too)[1]["status"] == "running"
    assert project.run("token", "revoke", mine["id"][:8]).code == 0
    assert server.ask("GET", "/v1/owner", authorization=f"Bearer {token}")[0] == 401
    link = project.run("open")
    assert link.out.startswith(f"{server.ready['url']}/#code=")
    status, session = server.ask(
        "POST", "/v1/sessions", {"code": link.out.strip().split("#code=")[1]}, authorization=""
    )
    assert (status, session["kind"]) == (201, "session")
    server.stop()
    assert project.run("open").code == 6
    assert project.run("token", "ls").out.count("local") >= 1


def test_a_fresh_link_for_a_server_on_a_database_is_asked_of_that_server(project: Project) -> None:
    with schema() as url:
        project.write("everstep.toml", f'store = "{url}"\n')
        process = project.start("serve", "--port", "0")
        assert process.stdout is not None
        at = process.stdout.readline().split()[-1]
        refused = project.run("open")
        assert (refused.code, "everstep --server URL open" in refused.err) == (6, True)
        assert project.run("--server", at, "open").out.startswith(f"{at}/#code=")
        process.terminate()
        _, err = process.communicate(timeout=30)
        assert f"another one: everstep --server {at} open" in err


def test_commands_speak_to_a_server_elsewhere(server: Server) -> None:
    with TemporaryDirectory(prefix="es-") as folder:
        away = Project(Path(folder))
        away.write("away.plan.yaml", "name: away\nsteps:\n  - {id: a, tool: text.join, with: {texts: [a, b]}}\n")
        url, token = server.ready["url"], server.token
        done = away.run("run", "away.plan.yaml", "--server", url, EVERSTEP_TOKEN=token)
        assert done.code == 0, done.err
        (task,) = away.run("ls", "--json", "--server", url, EVERSTEP_TOKEN=token).json["items"]
        assert (task["status"], task["plan"]["name"]) == ("completed", "away")
        file = away.write("token", token)
        file.chmod(0o600)
        away.write("everstep.toml", f'server = "{url}"\ntoken_file = "token"\n')
        assert away.run("show", task["id"], "--json").json["outcome"] == "success"
        assert not (away.path / ".everstep").exists()
        assert away.run("ls", EVERSTEP_TOKEN="es_wrong").code == 4
        file.chmod(0o644)
        assert away.run("ls").code == 4
        server.stop()
        assert away.run("ls", EVERSTEP_TOKEN=token).code == 6


def test_ctrl_c_is_a_stop_too(server: Server) -> None:
    assert server.stop(signal.SIGINT)[0] == 0


def test_a_second_serve_keeps_the_token(server: Server) -> None:
    server.stop()
    again = Server(server.project)
    assert again.token == server.token
    assert again.ask("GET", "/v1/tasks")[0] == 200
    again.stop()


def test_a_token_that_others_can_read_stops_the_start(server: Server) -> None:
    server.stop()
    token = server.project.path / ".everstep/token"
    token.chmod(0o644)
    done = server.project.run("serve", "--port", "0")
    assert done.code == 4
    assert "chmod 600" in done.err
    assert str(token) in done.err


def test_beyond_the_loopback_without_tls_it_does_not_start(project: Project) -> None:
    done = project.run("serve", "--port", "0", "--host", "0.0.0.0")
    assert done.code == 4
    assert "--behind-tls-proxy" in done.err
    assert not (project.path / ".everstep").exists()


def test_a_taken_port_is_named_before_the_store_is_opened(project: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = project.run("serve", "--port", str(taken.getsockname()[1]), "--json")
    assert done.code == 6
    assert done.lines[-1]["error"]["code"] == "port_in_use"
    assert not (project.path / ".everstep").exists()


def test_tools_that_only_pretend_are_refused_but_for_tests(project: Project) -> None:
    project.write("everstep.toml", 'tools = ["everstep.testing.sim"]\n')
    done = project.run("serve", "--port", "0")
    assert done.code == 4
    assert "--testing" in done.err
    server = Server(project, "--testing")
    assert server.stop()[0] == 0


def test_over_tls(project: Project) -> None:
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=project.path, capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("there is no openssl")
    server = Server(project, "--host", "0.0.0.0", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    import ssl

    context = ssl.create_default_context(cafile=project.path / "cert.pem")
    connection = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=30)
    connection.request("GET", "/v1/health", headers={"origin": f"https://localhost:{server.port}"})
    assert connection.getresponse().status == 200
    connection.close()
    assert server.ready["url"].startswith("https://127.0.0.1:")
    assert server.stop()[0] == 0
    done = project.run("serve", "--port", "0", "--tls-cert", "cert.pem")
    assert (done.code, "serve.tls_key" in done.err) == (3, True)
    project.write("bad.pem", "no certificate")
    done = project.run("serve", "--port", "0", "--tls-cert", "bad.pem", "--tls-key", "key.pem")
    assert done.code == 3


def test_the_tools_of_the_project_are_loaded_and_the_store_is_carried(project: Project) -> None:
    """A task that was interrupted is taken up by the next serve, over HTTP it can be seen."""
    project.write("plans/nap.plan.yaml", PLAN)
    first = Server(project)
    _, task = first.ask("POST", "/v1/tasks", {"plan_name": "nap"})
    first.ask("GET", f"/v1/tasks/{task['id']}/events?after=2&wait=20")
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.communicate()
    second = Server(project)
    assert second.ready["recovered"] == 1
    assert second.ask("GET", f"/v1/tasks/{task['id']}")[1]["recoveries"] <= 1
    second.stop()
