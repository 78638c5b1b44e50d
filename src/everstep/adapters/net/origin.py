"""Who wrote the host of a call: the plan itself, the configuration, or data. The guard opens by that."""

from everstep.adapters.net.guard import Asked, Use
from everstep.ports.tool import Ctx


def asked_by(ctx: Ctx, argument: str, use: Use, *, configured: bool = False) -> Asked:
    """Who wrote the host of a call: the plan itself, the configuration, or data."""
    written = ctx.origin.written.get(argument)
    literal = ctx.origin.trusted and isinstance(written, str) and is_literal_place(written)
    if configured:
        came_from = "the configuration"
    elif not isinstance(written, str):
        came_from = "an answer"
    elif not ctx.origin.trusted and "${" not in written:
        came_from = "an untrusted plan"
    else:
        came_from = written if len(written) <= 100 else f"{written[:99]}…"
    return Asked(use=use, literal=literal or configured, configured=configured, came_from=came_from)


def is_literal_place(written: str) -> bool:
    """Whether scheme, host and port are written out: no binding stands before the path."""
    before, binding, _ = written.replace("$${", "\0").partition("${")
    if not binding:
        return True
    place = before.partition("://")[2]
    return any(mark in place for mark in "/?#") and "\0" not in place.partition("/")[0]
