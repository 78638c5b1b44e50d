"""`db migrate --down`: a store that an older program opens, and its way forward again."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.commands import Project
from tests.postgres import schema

PLAN = "name: one\nsteps: [{id: a, tool: text.join, with: {texts: [a, b]}}]\n"


@pytest.fixture
def here() -> Iterator[Project]:
    with TemporaryDirectory(prefix="es-") as folder:
        project = Project(Path(folder))
        project.write("one.plan.yaml", PLAN)
        yield project


def schema_of(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        ((version,),) = connection.execute("PRAGMA user_version")
    return int(version)


@contextmanager
def at_work(here: Project) -> Iterator[None]:
    """A worker on the store of this folder."""
    worker = here.start("worker", "--json")
    assert worker.stdout is not None
    assert '"ready"' in worker.stdout.readline()
    yield
    worker.terminate()
    worker.communicate(timeout=30)


@pytest.mark.req("WF-12")
def test_a_file_goes_back_step_by_step_and_forward_again(here: Project) -> None:
    file = here.path / ".everstep" / "everstep.db"
    assert here.run("db", "migrate", "--down", "--yes").code == 5
    assert here.run("run", "one").code == 0
    newest = schema_of(file)
    asked = here.run("db", "migrate", "--down")
    assert (asked.code, "everstep db migrate --down --yes" in asked.err, schema_of(file)) == (2, True, newest)
    for step in (1, 2):
        lowered = here.run("db", "migrate", "--down", "--yes", "--json")
        assert lowered.json == {"steps": -1, "schema_version": newest - step}
        assert schema_of(file) == newest - step
    copies = sorted((here.path / ".everstep" / "backups").glob("*.db"))
    assert {schema_of(copy) for copy in copies} == {newest, newest - 1}
    assert here.run("db", "migrate", "--yes").code == 0
    assert schema_of(file) == newest
    assert [task["status"] for task in here.run("ls", "--json").json["items"]] == ["completed"]
    assert here.run("db", "check").code == 0


def test_a_file_at_work_stays_as_it_is(here: Project) -> None:
    here.write("nap.plan.yaml", "name: nap\nsteps: [{id: a, tool: wait, with: {for: 1h}}]\n")
    with at_work(here):
        refused = here.run("db", "migrate", "--down", "--yes")
    assert (refused.code, "store_locked" in refused.err) == (6, True)


@pytest.mark.req("WF-12")
def test_a_database_goes_back_while_nobody_works_on_it(here: Project) -> None:
    with schema() as url:
        here.write("everstep.toml", f'store = "{url}"\n')
        newest = here.run("db", "info", "--json").json["schema_version"]
        with at_work(here):
            refused = here.run("db", "migrate", "--down", "--yes")
        assert (refused.code, "work on this store" in refused.err) == (6, True)
        lowered = here.run("db", "migrate", "--down", "--yes", "--json")
        assert lowered.json == {"steps": -1, "schema_version": newest - 1}
        older = here.run("worker", "--once")
        assert (older.code, "everstep db migrate" in older.err) == (6, True)
        assert here.run("db", "migrate", "--yes", "--json").json == {"steps": 1, "schema_version": newest}
        assert here.run("worker", "--once").code == 0
