"""The schema for editors says what the settings say: it may allow more, never less."""

import tomllib
from pathlib import Path

import jsonschema_rs
import pytest

from everstep.domain.errors import SettingsError
from everstep.settings import load_settings
from everstep.settings.keys import FAMILIES, KEYS
from everstep.settings.schema import settings_schema

SCHEMA = jsonschema_rs.validator_for(settings_schema())


def test_every_key_is_in_it_with_its_meaning_and_default() -> None:
    whole = str(settings_schema())
    for key in (*KEYS, *FAMILIES.values()):
        assert repr(key.meaning) in whole, key.name
    for key in KEYS:
        said = tomllib.loads(f"{key.name} = {_toml(key.default)}") if key.default is not None else {}
        assert SCHEMA.is_valid(said), key.name


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).replace("'", '"')


@pytest.mark.parametrize(
    "text",
    [
        "engine.tasks = 1",
        'engine.step_timeout = "1h30m"',
        'limits.memory = "512MiB"\nlimits.cost = 0.5',
        "breaker.share = 0.25",
        'rates.github = "10/1s"\nquotas.github = 100',
        "pools.browser = 2",
        'pools.browser = {size = 2, scope = "fleet"}',
        'policy.approve.mail.send = true\npolicy.untrusted."file.write" = "allow"',
        'policy.permissions.ana = ["fs.write:docs", "net.http"]',
        "breakers.shop.failures = 2",
        'http.targets.api = {url = "https://api.example", auth = "secret:api"}',
        "mcp.workflows.brief = {}",
        "mcp.workflows.brief = {task_support = true}",
        'mcp.servers.gh = {command = ["gh-mcp"], env = {TOKEN = "secret:gh"}, effects = {search = "pure"}}',
        'shell.commands.make = {program = "/usr/bin/make", transient_exit = ["75"]}',
        'notify.on = ["failed"]',
    ],
)
def test_what_the_settings_take_it_takes(text: str, tmp_path: Path) -> None:
    (tmp_path / "everstep.toml").write_text(text, encoding="utf-8")
    load_settings({}, cwd=tmp_path, env={})
    assert [error.message for error in SCHEMA.iter_errors(tomllib.loads(text))] == []


@pytest.mark.parametrize(
    "text",
    [
        "engine.taks = 1",
        "engine.tasks = 0",
        'engine.tasks = "many"',
        'engine.step_timeout = "soon"',
        'limits.memory = "2 GB"',
        "breaker.share = 2",
        'durability = "no"',
        "serve.ui = 1",
        'tools = ["a", ""]',
        'http.targets.api.uri = "https://api.example"',
        'policy.permissions.ana = ["everything"]',
        "stor = 1",
    ],
)
def test_what_the_settings_refuse_it_refuses(text: str, tmp_path: Path) -> None:
    (tmp_path / "everstep.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError):
        load_settings({}, cwd=tmp_path, env={})
    assert not SCHEMA.is_valid(tomllib.loads(text))
