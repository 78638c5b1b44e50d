"""Who imports whom: what the contracts of import-linter cannot say."""

import ast
import sys
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from tests.tidy.source import Problem, Source

# The judge and what it is made of: they may use each other and the standard library, and nothing else.
CHECKER = frozenset({"approvals", "checker", "effects", "fold", "history", "moves", "rework", "state"})
# Opened by users or by name, so nothing of ours needs to import them.
PUBLIC = frozenset({"everstep.blocking", "everstep.errors", "everstep.mcp"})


def imports(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Every dotted name that an import statement could mean: `from a import b` yields `a` and `a.b`."""
    for node in source.nodes(ast.Import):
        yield from ((node, alias.name) for alias in node.names)
    for other in source.nodes(ast.ImportFrom):
        above = source.package.split(".")[: len(source.package.split(".")) - other.level + 1] if other.level else []
        home = ".".join([*above, *([other.module] if other.module else [])])
        yield other, home
        yield from ((other, f"{home}.{alias.name}") for alias in other.names)


def own_imports(source: Source, modules: AbstractSet[str]) -> frozenset[str]:
    """The product's modules that a file imports; a package counts only when nothing inside it was meant."""
    named = {name for _, name in imports(source)} & modules
    return frozenset(name for name in named if not any(other.startswith(f"{name}.") for other in named))


def checker_stands_alone(source: Source) -> Iterator[Problem]:
    """The judge shares no code with the judged, nor with anything that must be installed."""
    if source.room == "torture" and source.module.rpartition(".")[2] in CHECKER:
        allowed = tuple(f"everstep.torture.{part}" for part in CHECKER)
        foreign = {
            node: name
            for node, name in imports(source)
            if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith(allowed)
        }
        for node, name in foreign.items():
            yield source.problem(node, f"the checker imports {name}; it may use the standard library only")


def orphans(product: Iterable[Source], users: Iterable[Source], entries: AbstractSet[str]) -> Iterator[Problem]:
    """Modules that nothing reaches: dead code with a file of its own.

    A string that names a module counts as an import, since lazy doors are opened by name. What `testing` and `torture`
    offer may be used by the tests alone, because users do the same.
    """
    sources = list(product)
    modules = {source.module for source in sources}
    reached = set(PUBLIC | entries)
    for source in sources:
        reached |= ({name for _, name in imports(source)} | set(named(source))) - {source.module}
    for_users = {name for source in users for _, name in imports(source)}
    for source in sources:
        if source.path.endswith(("/__init__.py", "/__main__.py")) or source.module in reached:
            continue
        if source.room not in {"testing", "torture"} or source.module not in for_users & modules:
            yield Problem(source.path, 1, "nothing imports this module: use it or remove it")


def named(source: Source) -> Iterator[str]:
    for node in source.nodes(ast.Constant):
        if isinstance(node.value, str):
            name = node.value.partition(":")[0]
            if name.lstrip(".").replace(".", "_").isidentifier():
                yield name
                yield f"{source.package}.{name.lstrip('.')}"
