"""The house as an outsider would check it: what may not be known where."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "everstep"
DRIVERS = {"apsw", "sqlite3", "psycopg", "msgspec"}


def imported(path: Path) -> set[str]:
    """The top-level packages, and of ours the rooms, that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            parts = name.split(".")
            found.add(".".join(parts[:2]) if parts[0] == "everstep" else parts[0])
    return found


@pytest.mark.req("WF-18")
def test_the_store_port_speaks_domain_types_only() -> None:
    allowed = {"everstep.domain", "collections", "pathlib", "typing"}
    assert imported(SRC / "ports" / "store.py") <= {*allowed, "everstep.ports"}
    assert imported(SRC / "ports" / "history.py") <= allowed


@pytest.mark.req("WF-4")
def test_only_stores_import_a_driver() -> None:
    guilty = {
        str(path.relative_to(SRC)): drivers
        for path in SRC.rglob("*.py")
        if (drivers := imported(path) & (DRIVERS - {"msgspec"}))
    }
    says_its_version = ("doors/cli/doctor_command.py", "doors/cli/version_command.py")
    databases = ("adapters/stores/sqlite/", "adapters/stores/postgres/")
    allowed = (*databases, "adapters/search_index.py", "torture/", *says_its_version)
    assert {path for path in guilty if not path.startswith(allowed)} == set()


@pytest.mark.req("C.1")
def test_only_one_file_calls_a_tool() -> None:
    """Outside tests of adapters, `execute` of an adapter is awaited in `engine/invoke.py` alone."""
    called = {
        str(path.relative_to(SRC))
        for room in ("engine", "facade", "doors", "domain", "ports")
        for path in (SRC / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "execute"
    }
    assert called == {"engine/invoke.py", "ports/adapter.py"}, "the port passes a plain adapter's call on"


@pytest.mark.req("WF-5")
def test_the_engine_knows_no_tool_by_name() -> None:
    named = {
        f"{path.name}: {node.value}"
        for path in (SRC / "engine").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value in {"wait", "ask", "file.read", "file.write", "text.join", "json.parse"}
    }
    assert named == set()


@pytest.mark.req("WF-5")
def test_a_tool_of_another_package_is_a_tool_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(
        textwrap.dedent('''
            """Tools of somebody else."""
            from everstep import tool

            @tool("acme.double", effect="pure")
            def double(n: int) -> int:
                """Twice as much."""
                return 2 * n
        ''')
    )
    (tmp_path / "everstep.toml").write_text('tools = ["acme"]\n')
    (tmp_path / "p.plan.yaml").write_text(
        "name: p\nsteps:\n  - {id: a, tool: acme.double, with: {n: 21}}\noutputs: {n: '${a}'}\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "everstep", "run", "p.plan.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "n: 42\n"), done.stderr


@pytest.mark.req("WF-20")
def test_no_error_is_swallowed() -> None:
    rules = "E722,S110,S112,BLE001,TRY002,FIX,TD"
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--select", rules, str(SRC)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
