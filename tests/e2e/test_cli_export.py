"""`everstep export` as a process: from the file, from a live engine, over HTTP; whole, or not at all."""

import csv
import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.commands import Project
from tests.e2e.test_serve import Server

PLAN = "name: join\nsteps:\n  - {id: a, tool: text.join, with: {texts: [a, b]}}\n"


@pytest.fixture
def project() -> Iterator[Project]:
    with TemporaryDirectory(prefix="es-") as folder:  # sockets need short paths
        made = Project(Path(folder))
        made.write("join.plan.yaml", PLAN)
        yield made


def test_from_the_file_through_the_socket_and_over_http_it_is_the_same(project: Project) -> None:
    assert project.run("export").out.startswith("id,title,plan,")
    for _ in range(3):
        project.run("run", "join.plan.yaml", "--new", "-q")
    from_file = project.run("export")
    assert from_file.code == 0
    assert len(list(csv.DictReader(from_file.out.splitlines()))) == 3
    whole = project.run("export", "--what", "events", "--format", "jsonl")
    server = Server(project)
    try:
        assert project.run("export").out == from_file.out
        assert project.run("export", "--what", "events", "--format", "jsonl").out == whole.out
        assert [task["status"] for task in project.run("export", "--json").json] == ["completed"] * 3
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", "/v1/export", headers={"authorization": f"Bearer {server.token}"})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        assert (reply.status, reply.headers["content-type"].split(";")[0]) == (200, "text/csv")
        assert 'filename="everstep-tasks.csv"' in reply.headers["content-disposition"]
        assert text.splitlines() == from_file.out.splitlines()
        refused = project.run("export", "--category", "transient")
        assert (refused.code, "what=events" in refused.err) == (2, True)
    finally:
        server.stop()


def test_a_file_is_there_whole_or_not_at_all(project: Project) -> None:
    project.run("run", "join.plan.yaml", "-q")
    done = project.run("export", "--format", "json", "--out", "tasks.json")
    assert (done.code, done.out) == (0, "")
    assert [task["status"] for task in json.loads((project.path / "tasks.json").read_text())] == ["completed"]
    failed = project.run("export", "--out", "no/such/folder.csv")
    assert (failed.code, "cannot write 'no/such/folder.csv'" in failed.err) == (2, True)
    assert [one.name for one in project.path.iterdir() if one.name.startswith(".") and one.name != ".everstep"] == []
