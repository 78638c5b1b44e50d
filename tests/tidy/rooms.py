"""What a room must never do. Read from the syntax tree, so a rule needs no import of what it judges."""

import ast
import re
from collections.abc import Iterator

from tests.tidy.imports import imports
from tests.tidy.source import Problem, Source

# Only these rooms touch the world; everything else must give the same answer under a seeded clock and loop.
WORLDLY = frozenset(
    {"adapters", "authoring", "testing", "torture", "demos", "blocking", "client", "doors", "bootstrap", "settings"}
)
WORLDLY_MODULES = frozenset({
    "time", "random", "secrets", "uuid", "threading", "multiprocessing", "concurrent", "socket", "subprocess",
})  # fmt: skip
WORLDLY_CALLS = frozenset({
    "open", "io.open", "os.open", "os.urandom", "os.popen", "os.system", "id",
    "datetime.now", "datetime.utcnow", "datetime.today", "date.today",
    "datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today",
    "asyncio.to_thread", "asyncio.open_connection", "asyncio.open_unix_connection",
    "asyncio.start_server", "asyncio.start_unix_server",
    "asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell",
})  # fmt: skip

SQL = re.compile(
    r"\s*(?:SELECT\b.+\bFROM|WITH\s+\S+\s+AS|INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE\s+\S+\s+SET|DELETE\s+FROM|"
    r"(?:CREATE|DROP|ALTER)\s+(?:TABLE|INDEX|VIEW|TRIGGER))\s",
    re.IGNORECASE | re.DOTALL,
)
CATCH_ALL = frozenset({"Exception", "BaseException"})
ONE_CALL = "src/everstep/engine/invoke.py"


def docstring(source: Source) -> Iterator[Problem]:
    if source.ours and not ast.get_docstring(source.tree):
        yield Problem(source.path, 1, "open with what this module is for, and what it must never know")


def world(source: Source) -> Iterator[Problem]:
    """Time, chance, threads, files and sockets come through ports, or a simulation could not repeat them."""
    if not source.ours or source.room in WORLDLY:
        return
    found = {
        node: name for node, name in imports(source) if name.split(".")[0] in WORLDLY_MODULES or name in WORLDLY_CALLS
    }
    for node, name in found.items():
        yield source.problem(node, f"import of {name}: ask a port")
    for call in source.nodes(ast.Call):
        called = ast.unparse(call.func)
        if called in WORLDLY_CALLS or called.endswith(".run_in_executor"):
            yield source.problem(call, f"{called}(): ask a port")
    for loop in source.nodes(ast.For, ast.AsyncFor, ast.comprehension):
        if is_set(loop.iter):
            yield source.problem(loop.iter, "the order of a set is chance: iterate a sorted or listed one")


def is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in {"set", "frozenset"}
    return isinstance(node, ast.Set | ast.SetComp)


def domain_never_waits(source: Source) -> Iterator[Problem]:
    if source.room == "domain":
        waits: list[ast.AST] = [*source.nodes(ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)]
        waits += [loop.target for loop in source.nodes(ast.comprehension) if loop.is_async]
        for node in waits:
            yield source.problem(node, "the domain is pure: no async, no await")


def formatted_sql(source: Source) -> Iterator[Problem]:
    """SQL is a literal with parameters; text that was put together may carry a stranger's words."""
    if not source.ours:
        return
    for node in source.nodes(ast.JoinedStr, ast.BinOp, ast.Call):
        match node:
            case ast.JoinedStr(values=parts) if any(isinstance(part, ast.FormattedValue) for part in parts):
                text = "".join(map(piece, parts))
            case ast.BinOp(op=ast.Mod() | ast.Add(), left=left, right=right):
                text = f"{piece(left)} {piece(right)}"
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format" | "join")):
                pass
            case _:
                continue
        if SQL.match(f"{text} "):
            yield source.problem(node, "SQL is put together from pieces: write a literal with parameters")


def piece(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "{}"


def catch_all(source: Source) -> Iterator[Problem]:
    """A bare except nowhere; in the engine one `except Exception`, around the one call."""
    if not source.ours:
        return
    broad: list[ast.AST] = []
    for handler in source.nodes(ast.ExceptHandler):
        if handler.type is None:
            yield source.problem(handler, "a bare except hides cancellation: name what you expect")
        elif caught(handler.type) & CATCH_ALL:
            broad.append(handler)
    for call in source.nodes(ast.Call):
        if ast.unparse(call.func).split(".")[-1] == "suppress":
            broad += [call for argument in call.args if caught(argument) & CATCH_ALL]
    if source.room == "engine":
        for node in broad[source.path == ONE_CALL :]:
            yield source.problem(node, "a second catch-all in the engine: classification belongs to invoke.py")


def caught(node: ast.expr) -> set[str]:
    return {ast.unparse(part).split(".")[-1] for part in (node.elts if isinstance(node, ast.Tuple) else [node])}
