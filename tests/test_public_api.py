"""The public names, pinned; and what importing them costs, since people import us in everything they start."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import everstep
from everstep import blocking, errors
from everstep.facade.engine import Engine
from everstep.facade.task import Task
from everstep.facade.views import Pause

ROOT = Path(__file__).resolve().parents[1]
NAMES = [
    "Arg", "Artifact", "Ctx", "Denied", "Engine", "Estimate", "Event", "EverstepError", "Impossible", "Misconfigured",
    "NeedsInput", "Pause", "Plan", "PlanError", "ResourceExceeded", "Result", "Secret", "Task", "ToolAdapter",
    "ToolError", "Transient", "Uncertain", "durable", "run", "tool",
]  # fmt: skip
ERRORS = [
    "Conflict", "EngineClosed", "EverstepError", "LimitExceeded", "NotAllowed", "NotFound", "PlanError", "RequestError",
    "SettingsError", "StoreError", "StoreFull", "StoreLocked", "StoreRefused", "Unavailable", "Validation",
]  # fmt: skip
HEAVY = frozenset({
    "asyncio", "msgspec", "apsw", "click", "rich", "yaml", "jsonschema_rs", "httpx2", "starlette", "uvicorn",
    "websockets", "psutil", "logging", "tomllib", "json", "pathlib", "dataclasses", "inspect",
})  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after this."""
    program = f"import sys; before = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name.split(".")[0] if not name.startswith("everstep") else name for name in done.stdout.split()}


def test_the_public_names_are_these() -> None:
    assert sorted(everstep.__all__) == everstep.__all__ == NAMES
    assert errors.__all__ == ERRORS


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name: str) -> None:
    assert getattr(everstep, name) is getattr(everstep, name)
    assert name in dir(everstep)


@pytest.mark.parametrize("name", ERRORS)
def test_every_error_is_the_domains_own(name: str) -> None:
    assert getattr(errors, name) is getattr(import_module("everstep.domain.errors"), name)


def test_a_name_that_is_not_there_is_said_so() -> None:
    with pytest.raises(AttributeError, match="module 'everstep' has no attribute 'Engin'"):
        _ = everstep.Engin


def test_a_star_brings_exactly_these() -> None:
    names: dict[str, object] = {}
    exec("from everstep import *", names)
    assert sorted(set(names) - {"__builtins__"}) == NAMES


def test_importing_loads_nothing_heavy() -> None:
    loaded = loaded_by("import everstep")
    assert {name for name in loaded if name.startswith("everstep")} == {"everstep"}
    assert not loaded & HEAVY


def test_a_tool_can_be_written_without_an_engine() -> None:
    loaded = loaded_by("from everstep import tool, ToolError, Arg")
    assert not loaded & {"asyncio", "apsw", "click", "rich", "starlette", "yaml"}
    assert not {name for name in loaded if name.startswith(("everstep.engine", "everstep.adapters", "everstep.doors"))}


def test_an_engine_loads_nothing_that_it_may_never_need() -> None:
    """Sixty megabytes are what an engine may take after a thousand tasks; each of these would cost one of them."""
    loaded = loaded_by("from everstep import Engine, Plan, tool; import everstep.bootstrap, everstep.doors.local.door")
    assert not loaded & {
        "email.message",
        "html",
        "importlib.metadata",
        "smtplib",
        "sqlite3",
        "zipfile",
        "httpx2",
        "rich",
    }
    assert not {name for name in loaded if name.startswith(("everstep.doors.api", "everstep.adapters.tools.llm"))}


def test_the_local_door_needs_no_web_framework() -> None:
    loaded = loaded_by("import everstep.doors.local.host")
    assert not loaded & {"starlette", "uvicorn", "click", "rich", "apsw"}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_blocking_face_has_the_same_names() -> None:
    inner = {"desk", "settings", "who", "unfinished", "resource", "asgi"}  # for McpServer, and for apps with a loop
    assert public(blocking.Engine) == public(Engine) - inner
    assert public(blocking.Task) == public(Task) - {"task_id"}
    assert public(blocking.Pause) == public(Pause)


@pytest.mark.parametrize("name", ["EverstepError", "PlanError"])
def test_errors_can_be_caught_by_either_spelling(name: str) -> None:
    assert getattr(everstep, name) is getattr(errors, name)
