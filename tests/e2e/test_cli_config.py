"""`everstep config`: what is in force, who said so, and no secret in it."""

import json
import tomllib
from pathlib import Path

import jsonschema_rs
import pytest

from tests.e2e.commands import Project

SETTINGS = """\
server = "https://ana:hush-hush@tasks.example/?token=hush-hush"

[engine]
tasks = 3

[audit]
key = "hush-hush-hush"

[mcp.servers.notes]
command = ["notes", "--token", "hush-hush"]
env = {TOKEN = "hush-hush"}
"""


@pytest.fixture
def here(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("everstep.toml", SETTINGS)
    return made


def test_every_setting_is_listed_with_who_said_so(here: Project) -> None:
    told = here.run("config", "--json", EVERSTEP_RETRY__TIMES="5").json
    assert told["engine.tasks"] == {"value": 3, "source": f"{here.path}/everstep.toml:4"}
    assert told["retry.times"] == {"value": 5, "source": "EVERSTEP_RETRY__TIMES"}
    assert told["engine.heartbeat"] == {"value": "5s", "source": "default"}
    assert here.run("config", "--store", "other.db", "--json").json["store"]["source"] == "flag"
    lines = here.run("config").out.splitlines()
    assert [one.split() for one in lines if one.startswith("engine.tasks")] == [
        ["engine.tasks", "3", "everstep.toml:4"]
    ]
    assert len(lines) == len(told)


def test_no_secret_is_shown(here: Project) -> None:
    every = ("--json", "config"), ("config",), ("config", "audit.key"), ("config", "mcp"), ("config", "server")
    for words in every:
        done = here.run(
            *words, EVERSTEP_STORE="postgresql://ana:hush-hush@db.example/tasks", EVERSTEP_TOKEN="hush-hush"
        )
        assert (done.code, "hush" in done.out + done.err) == (0, False), done.out
    told = here.run("config", "--json").json
    assert told["audit.key"]["value"] == "[hidden]"
    assert told["mcp.servers.notes.command"]["value"] == ["notes", "--token", "[hidden]"]
    assert told["server"]["value"] == "https://tasks.example/?[hidden]"


def test_one_setting_or_a_table_of_them(here: Project) -> None:
    one = here.run("config", "engine.tasks")
    assert one.out.splitlines()[0] == "engine.tasks  3  everstep.toml:4"
    assert "tasks at work in one process" in one.out
    assert "default 64" in one.out
    assert here.run("config", "engine.tasks", "--json").json.keys() == {"engine.tasks"}
    assert {"mcp.ttl", "mcp.servers.notes.command"} <= here.run("config", "mcp", "--json").json.keys()
    assert here.run("config", "pools.browser", "--json").json == {"pools.browser": {"value": None, "source": "default"}}
    nothing = here.run("config", "rates")
    assert (nothing.code, nothing.out, "nothing is said below 'rates'" in nothing.err) == (0, "", True)


def test_a_setting_that_nobody_knows_is_refused_with_the_closest_name(here: Project) -> None:
    refused = here.run("config", "engine.taks")
    assert (refused.code, "did you mean 'engine.tasks'?" in refused.err) == (5, True)
    assert here.run("config", "heartbeet", "--json").json["error"]["code"] == "not_found"
    here.write("everstep.toml", "[engine]\ntaks = 3\n")
    broken = here.run("config")
    assert (broken.code, "everstep.toml:2" in broken.err) == (3, True)
    assert here.run("settings").err.count("did you mean 'config'?") == 1


def test_the_schema_of_the_file_is_for_editors(here: Project) -> None:
    schema = json.loads(here.run("config", "schema").out)
    assert jsonschema_rs.is_valid(schema, tomllib.loads(SETTINGS))
    assert not jsonschema_rs.is_valid(schema, tomllib.loads("[engine]\ntaks = 3\n"))
    assert here.run("config", "schema", "--json").json == schema


def test_keys_are_completed(here: Project) -> None:
    done = here.run(COMP_WORDS="everstep config engine.ta", COMP_CWORD="2", _EVERSTEP_COMPLETE="bash_complete")
    assert done.out.splitlines() == ["plain,engine.tasks"]
