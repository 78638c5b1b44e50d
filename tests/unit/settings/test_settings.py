"""Who says a setting wins by nearness; what is wrong is named with its place; nothing is ever ignored."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everstep.domain.errors import SettingsError
from everstep.domain.values import JsonValue
from everstep.settings import Settings, load_settings
from everstep.settings.keys import KEYS


class Project:
    """A folder with a sub-folder in it, a home, and an environment of its own."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "project"
        self.sub = self.folder / "deep" / "er"
        self.sub.mkdir(parents=True)
        self.env = {"HOME": str(root / "home")}
        self.flags: dict[str, JsonValue] = {}

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, cwd: Path | None = None, **flags: JsonValue) -> Settings:
        return load_settings({**self.flags, **flags}, cwd=cwd or self.folder, env=self.env)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# --- defaults ---


def test_every_key_has_a_default_within_its_own_bounds_and_a_meaning(project: Project) -> None:
    listing = project.load().listing()
    assert list(listing) == [key.name for key in KEYS]
    for key in KEYS:
        assert key.meaning
        assert listing[key.name] == {"value": key.written(key.usual), "source": "default"}
        if isinstance(key.usual, int):
            assert key.least <= key.usual <= key.most


def test_the_defaults_are_those_of_the_catalogue(project: Project) -> None:
    settings = project.load()
    assert settings.store == ".everstep/everstep.db"
    assert settings.store_path == project.folder / ".everstep/everstep.db"
    assert (settings.owner, settings.durability, settings.log_level) == ("local", "power", "info")
    assert settings.workspace == settings.base == project.folder
    assert settings.plans_dirs == (project.folder / "plans", project.folder)
    assert settings.artifacts == project.folder / ".everstep/artifacts"
    assert settings.log_path == project.folder / ".everstep/logs/everstep.log"
    assert settings.lock_path == project.folder / ".everstep/everstep.lock"
    assert settings.with_store("/x/everstep.db").socket_path == Path("/x/control.sock")
    engine = settings.engine
    assert (engine.tasks, engine.heartbeat_ms, engine.stale_after_ms) == (64, 5_000, 30_000)
    assert (engine.max_recoveries, engine.shutdown_grace_ms, engine.step_timeout_ms) == (5, 10_000, 60_000)
    limits = settings.limits
    assert (limits.items, limits.inline_bytes, limits.artifact_bytes) == (10_000, 32 * 1024, 16 * 1024 * 1024)
    assert (settings.retry.times, settings.retry.delay_ms, settings.retry.max_delay_ms) == (3, 1_000, 30_000)


def test_live_tasks_depend_on_the_owner_unless_they_are_said(project: Project) -> None:
    assert project.load().limits.live_tasks is None
    assert project.load(limits={"live_tasks": 7}).limits.live_tasks == 7


def test_rules_about_calls_are_read_tool_by_tool(project: Project) -> None:
    project.write("everstep.toml", '[policy.approve]\n"mail.send" = true\n[policy.untrusted]\nfile.write = "allow"\n')
    project.env["EVERSTEP_POLICY__APPROVE__DISK__WIPE"] = "false"
    settings = project.load()
    assert settings.consent.approve == {"mail.send": True, "disk.wipe": False}
    assert settings.consent.allow_untrusted == {"file.write"}
    shown = settings.listing()["policy.approve.mail.send"]
    assert isinstance(shown, dict)
    assert shown["value"] is True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('policy.approve."mail.send" = "yes"', "must be true or false"),
        ("policy.approve.x = 1", "must be true or false"),
        ('policy.untrusted.x = "maybe"', "must be one of ask, allow"),
        ("policy.approve = true", "is not a setting"),
    ],
)
def test_a_rule_that_cannot_be_read_is_refused(project: Project, text: str, why: str) -> None:
    project.write("everstep.toml", f"{text}\n")
    with pytest.raises(SettingsError, match=why):
        project.load()


# --- who wins ---


def by_flag(project: Project, key: str, value: str) -> None:
    project.flags[key] = value


def by_environment(project: Project, key: str, value: str) -> None:
    project.env[f"EVERSTEP_{key.upper().replace('.', '__')}"] = value


def by_project_file(project: Project, key: str, value: str) -> None:
    project.write("everstep.toml", f'{key} = "{value}"\n')


def by_pyproject(project: Project, key: str, value: str) -> None:
    project.write("pyproject.toml", f'[project]\nname = "x"\n\n[tool.everstep]\n{key} = "{value}"\n')


def by_own_file(project: Project, key: str, value: str) -> None:
    path = Path(project.env["HOME"]) / ".config/everstep/config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(f'{key} = "{value}"\n', encoding="utf-8")


WAYS = (by_flag, by_environment, by_project_file, by_pyproject, by_own_file)


@pytest.mark.parametrize("key", ["engine.step_timeout", "owner"])
@pytest.mark.parametrize("first", range(len(WAYS)), ids=lambda at: WAYS[at].__name__)
def test_the_nearest_word_wins(project: Project, key: str, first: int) -> None:
    values = ["1s", "2s", "3s", "4s", "5s"]
    for way, value in list(zip(WAYS, values, strict=True))[first:]:
        way(project, key, value)
    said = project.load().listing()[key]
    assert isinstance(said, dict)
    assert said["value"] == values[first]
    assert said["source"] != "default"


def test_words_are_merged_key_by_key(project: Project) -> None:
    by_own_file(project, "owner", "home")
    by_pyproject(project, "durability", "process")
    by_project_file(project, "log_level", "debug")
    project.env["EVERSTEP_ENGINE__TASKS"] = "3"
    settings = project.load(retry={"times": 1})
    assert (settings.owner, settings.durability, settings.log_level) == ("home", "process", "debug")
    assert (settings.engine.tasks, settings.retry.times) == (3, 1)
    assert settings.source_of("owner").endswith("config.toml:1")
    assert settings.source_of("durability") == f"{project.folder / 'pyproject.toml'}:5"
    assert settings.source_of("engine.tasks") == "EVERSTEP_ENGINE__TASKS"
    assert settings.source_of("retry.times") == "flag"


def test_a_file_can_be_named_by_flag_or_variable_and_then_stands_for_the_nearest(project: Project) -> None:
    by_project_file(project, "owner", "near")
    other = project.write("elsewhere/other.toml", 'owner = "far"\nstore = "x.db"\n')
    assert project.load(config="elsewhere/other.toml").owner == "far"
    project.env["EVERSTEP_CONFIG"] = str(other)
    settings = project.load()
    assert settings.owner == "far"
    assert settings.store_path == other.parent / "x.db"
    assert settings.base == project.folder


def test_flags_may_be_dotted_nested_or_not_given(project: Project) -> None:
    assert project.load(engine={"tasks": 3}).engine.tasks == 3
    project.flags["engine.tasks"] = 2
    assert project.load().engine.tasks == 2
    assert project.load(store=None, owner=None).source_of("store") == "default"


def test_lists_in_the_environment_are_parted_by_commas_and_empty_variables_say_nothing(project: Project) -> None:
    project.env |= {"EVERSTEP_TOOLS": "acme, my_tools", "EVERSTEP_OWNER": ""}
    settings = project.load()
    assert settings.tools == ("acme", "my_tools")
    assert settings.source_of("owner") == "default"


@pytest.mark.parametrize(
    "name", ["CONFIG_", "TOKEN", "SECRET_SMTP", "FAILPOINTS", "NO_DASHBOARD", "EFFECT_LOG"], ids=str
)
def test_reserved_variables_are_no_settings(project: Project, name: str) -> None:
    project.env[f"EVERSTEP_{name.removesuffix('_')}"] = "" if name == "CONFIG_" else "x"
    assert project.load().owner == "local"


# --- paths ---


def test_relative_paths_count_from_the_file_that_names_them(project: Project) -> None:
    project.write("everstep.toml", 'store = "data/s.db"\nworkspace = "work"\n[plans]\ndirs = ["p", "/abs"]\n')
    settings = project.load(cwd=project.sub)
    assert settings.store_path == project.folder / "data/s.db"
    assert settings.workspace == project.folder / "work"
    assert settings.plans_dirs == (project.folder / "p", Path("/abs"))


def test_without_a_file_they_count_from_the_nearest_state_folder(project: Project) -> None:
    (project.folder / ".everstep").mkdir()
    project.env["EVERSTEP_STORE"] = "s.db"
    settings = project.load(cwd=project.sub)
    assert settings.base == project.folder
    assert settings.store_path == project.folder / "s.db"
    assert settings.workspace == project.folder


def test_without_either_they_count_from_the_current_folder(project: Project) -> None:
    settings = project.load(cwd=project.sub, store="../s.db")
    assert settings.base == project.sub
    assert settings.store_path == project.sub.parent / "s.db"


def test_a_nearer_project_is_not_drawn_into_a_store_further_up(project: Project) -> None:
    (project.folder / ".everstep").mkdir()
    (project.sub / "everstep.toml").write_text("", encoding="utf-8")
    assert project.load(cwd=project.sub).store_path == project.sub / ".everstep/everstep.db"


def test_what_stands_beside_a_store_goes_with_it(project: Project) -> None:
    settings = project.load().with_store("/x/work.db")
    assert settings.store_path == Path("/x/work.db")
    assert settings.artifacts == Path("/x/work.artifacts")
    assert settings.log_path == Path("/x/work.logs/everstep.log")
    assert settings.lock_path == Path("/x/work.lock")
    assert settings.socket_path == Path("/x/work.control.sock")
    assert settings.base == project.folder
    assert project.load(artifacts="big").with_store("/x/y.db").artifacts == project.folder / "big"


def test_a_socket_whose_path_is_too_long_goes_to_the_runtime_folder(project: Project) -> None:
    project.env["XDG_RUNTIME_DIR"] = "/run/user/1"
    long = project.folder / ("x" * 100) / "everstep.db"
    settings = project.load(store=str(long))
    assert settings.socket_path.parent == Path("/run/user/1/everstep")
    assert settings.socket_path != project.load(store=str(long.with_name("other.db"))).socket_path
    del project.env["XDG_RUNTIME_DIR"]
    assert project.load(store=str(long)).runtime == Path(f"/tmp/everstep-{os.getuid()}")


# --- refusals ---

BAD: tuple[tuple[str, str, str], ...] = (
    ("stor = 'x'", ":1", "'stor' is not a setting (did you mean 'store'?)"),
    ("\n[engine]\nheartbeet = '5s'", ":3", "'engine.heartbeet' is not a setting (did you mean 'engine.heartbeat'?)"),
    ("heartbeat = '5s'", ":1", "'heartbeat' is not a setting (did you mean 'engine.heartbeat'?)"),
    ("[serve]\nport = 70000", ":2", "'serve.port' must be between 0 and 65535, not 70000"),
    ("[serve]\nui = 1", ":2", "'serve.ui' must be true or false, not 1"),
    ("[serve]\nprot = 1", ":2", "'serve.prot' is not a setting"),
    ("engine.tasks = 'many'", ":1", "'engine.tasks' must be a whole number, not 'many'"),
    ("engine.tasks = true", ":1", "'engine.tasks' must be a whole number, not True"),
    ("engine.tasks = 0", ":1", "'engine.tasks' must be between 1 and 10000, not 0"),
    ("[engine]\nheartbeat = 5", ":2", "'engine.heartbeat' must be a duration such as 500ms, 30s, 1h30m, not 5"),
    ("[engine]\nheartbeat = '2m'", ":2", "'engine.heartbeat' must be between 100ms and 1m, not '2m'"),
    ("limits.inline = '1MiB'", ":1", "'limits.inline' must be between 64B and 32KiB, not '1MiB'"),
    ("limits.inline = 'big'", ":1", "'limits.inline' must be a size such as 32KiB, 16MB, not 'big'"),
    ("durability = 'none'", ":1", "'durability' must be one of power, process, not 'none'"),
    ("log_level = 1", ":1", "'log_level' must be one of debug, info, warning, error, not 1"),
    ("owner = 'a b'", ":1", "'owner' must be 1 to 128 letters, digits, '.', '_', '@', '-', not 'a b'"),
    ("store = ''", ":1", "'store' must be text that is not empty, not ''"),
    ("store = 'mysql://db/x'", ":1", "'store' begins 'mysql://': name a file, or a database as postgresql://HOST/NAME"),
    ("tools = 'acme'", ":1", "'tools' must be a list of texts, not 'acme'"),
    ("tools = ['a', 1]", ":1", "'tools' must be a list of texts, not ['a', 1]"),
    ("[store]\nx = 1", "", "'store' must be text that is not empty, not {'x': 1}"),
    ("engine.stale_after = '10s'", ":1", "'engine.stale_after' is wrong: a worker would count as dead"),
    ("engine.heartbeat = '20s'", ":1", "'engine.heartbeat' is wrong: a worker would count as dead"),
    ("breaker.share = 'half'", ":1", "'breaker.share' must be a share such as 0.5, not 'half'"),
    ("breaker.share = 1.5", ":1", "'breaker.share' must be between 0.001 and 1.0, not 1.5"),
    ("breakers.shop.share = 'half'", ":1", "'breakers.shop.share' must be a share such as 0.5, not 'half'"),
    ("breakers.shop.cool_down = '1h'", ":1", "'breakers.shop.cool_down' is wrong: 'breakers.shop.cool_down' is longer"),
    ("breaker.cool_down = '1h'", ":1", "'breaker.cool_down' is wrong: 'breaker.cool_down' is longer than"),
    ("retry.delay = '1m'", ":1", "'retry.delay' is wrong: 'retry.delay' is longer than 'retry.max_delay'"),
)


@pytest.mark.parametrize(("text", "line", "message"), BAD, ids=[text for text, _, _ in BAD])
def test_a_wrong_line_is_refused_with_its_place(project: Project, text: str, line: str, message: str) -> None:
    path = project.write("everstep.toml", text)
    with pytest.raises(SettingsError) as refused:
        project.load()
    assert str(refused.value).startswith(f"{path}{line}: {message}")
    assert refused.value.code == "config_invalid"
    assert refused.value.details["place"] == f"{path}{line}"


def test_a_line_is_found_in_every_usual_spelling(project: Project) -> None:
    for text in (
        "[tool.everstep.engine]\ntasks = 0",
        "[tool.everstep]\nengine.tasks = 0",
        "tool.everstep.'engine'.tasks = 0",
    ):
        path = project.write("pyproject.toml", text)
        with pytest.raises(SettingsError, match=f"^{path}:{text.count(chr(10)) + 1}: 'engine.tasks' must be between"):
            project.load()


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("EVERSTEP_STOR", "x", "EVERSTEP_STOR: 'stor' is not a setting (did you mean 'store'?)"),
        ("EVERSTEP_ENGINE__TASKS", "x", "EVERSTEP_ENGINE__TASKS: 'engine.tasks' must be a whole number, not 'x'"),
        ("EVERSTEP_ENGINE__TASKS", "-1", "EVERSTEP_ENGINE__TASKS: 'engine.tasks' must be between 1 and 10000, not -1"),
        ("EVERSTEP_STORE", "a\0b", "EVERSTEP_STORE: 'store' must be text"),
    ],
)
def test_a_wrong_variable_is_refused_by_name(project: Project, variable: str, value: str, message: str) -> None:
    project.env[variable] = value
    with pytest.raises(SettingsError) as refused:
        project.load()
    assert str(refused.value).startswith(message)


def test_a_wrong_option_is_refused_by_name_and_long_values_are_cut(project: Project) -> None:
    with pytest.raises(SettingsError, match=r"^the option 'ownr': 'ownr' is not a setting \(did you mean 'owner'\?\)"):
        project.load(ownr="x")
    with pytest.raises(SettingsError, match=r"^the option 'owner': .{1,160}(\n|$)"):
        project.load(owner="x y" * 1000)
    with pytest.raises(SettingsError, match=r"^the argument 'store': 'store' begins 'mysql://'"):
        project.load().with_store("mysql://x")


def test_a_database_has_no_file_and_its_password_is_shown_nowhere(project: Project) -> None:
    settings = project.load().with_store("postgresql://me:hush@db:5433/tasks?sslmode=require")
    assert settings.store_path is None
    assert settings.log_path == settings.base / ".everstep" / "logs" / "everstep.log"
    assert settings.listing()["store"] == {"value": "postgresql://db:5433/tasks", "source": "the argument 'store'"}
    assert "hush" not in repr(settings.listing())


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"store = ", "is not TOML in UTF-8: Invalid value"), (b"\xff", "is not TOML in UTF-8: 'utf-8' codec")],
)
def test_a_file_that_is_no_toml_is_refused(project: Project, content: bytes, message: str) -> None:
    (project.folder / "everstep.toml").write_bytes(content)
    with pytest.raises(SettingsError) as refused:
        project.load()
    assert str(refused.value).startswith(f"{project.folder / 'everstep.toml'}: {message}")


def test_a_named_file_that_is_not_there_is_refused(project: Project) -> None:
    with pytest.raises(SettingsError, match=r"nothing\.toml: cannot be read: No such file"):
        project.load(config="nothing.toml")


@pytest.mark.parametrize(
    "text",
    [
        "[tool.everstep]\nlog_level = 'error'",
        "[ tool . 'everstep' ]\nlog_level = 'error'",
        "tool.everstep.log_level = 'error'",
        "[tool]\neverstep.log_level = 'error'",
        '["tool"]\neverstep = {log_level = "error"}',
        "tool = {everstep = {log_level = 'error'}}",
    ],
)
def test_a_pyproject_may_say_it_in_every_way_of_toml(project: Project, text: str) -> None:
    project.write("pyproject.toml", text)
    assert project.load().source_of("log_level").startswith(str(project.folder))


def test_a_pyproject_that_speaks_of_something_else_is_left_alone(project: Project) -> None:
    project.write("pyproject.toml", 'tool = 1\nname = "everstep"\n')
    assert project.load().source_of("owner") == "default"
    project.write("pyproject.toml", "this is [not TOML")
    assert project.load().source_of("owner") == "default"


def test_reading_without_a_file_loads_no_parser(project: Project) -> None:
    code = "import sys; from everstep.settings import load_settings; load_settings({}); print('tomllib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project.folder, env=project.env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
