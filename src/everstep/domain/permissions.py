"""Permissions: what a tool needs, and what the operator grants to whom. Pure.

An owner of whom the policy says nothing may use every tool; one it names may use what it lists, and nothing else.
"""

from collections.abc import Collection, Iterable
from typing import Final

from everstep.domain.failure import Category, EffectState, Failure

KNOWN: Final = frozenset(
    {"fs.read", "fs.write", "proc.exec", "net.http", "net.browser", "mail.send", "mcp.call", "secrets.use"}
)


def unknown(names: Iterable[str]) -> list[str]:
    """Those that name no permission; `fs.write:docs` is one of `fs.write`."""
    return [name for name in names if name.partition(":")[0] not in KNOWN]


def lacking(needs: Iterable[str], granted: Collection[str] | None) -> str | None:
    """The first thing that is needed and not granted; None: everything is."""
    if granted is None:
        return None
    return next((need for need in needs if need not in granted and need.partition(":")[0] not in granted), None)


def denial(tool: str, permission: str, owner: str) -> Failure:
    """What a call without it comes to."""
    return Failure(
        code="permission_denied",
        category=Category.PERMISSION,
        message=f"{tool} needs '{permission}', which {owner} does not have",
        what_to_do=f'grant it: [policy.permissions] {owner} = [..., "{permission}"], or leave the step out',
        effect_state=EffectState.NONE,
        details={"permission": permission},
    )
