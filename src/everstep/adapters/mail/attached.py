"""Files of the workspace, and artifacts, that go along with a message."""

from collections.abc import Iterator, Sequence
from typing import Final

from everstep.adapters.files import Workspace
from everstep.adapters.paths import names_of
from everstep.adapters.threads import Threads
from everstep.domain.values import JsonValue
from everstep.ports.tool import Ctx, ResourceExceeded, ToolError

BYTES_MAX: Final = 10 << 20


def path_problems(given: JsonValue) -> Iterator[tuple[str, str]]:
    """Paths that lead out, or nowhere."""
    for at, path in enumerate(given if isinstance(given, list) else ()):
        if not isinstance(path, str):
            continue
        try:
            names_of(path)
        except ToolError as error:
            yield f"/attachments/{at}", str(error)


async def attached(given: JsonValue, ctx: Ctx, threads: Threads) -> dict[str, bytes]:
    """What they hold, by name; raises ResourceExceeded where they are too large together."""
    wanted = given if isinstance(given, list) else []
    found = {str(one["name"]): await ctx.kept(one) for one in wanted if isinstance(one, dict)}
    used = sum(map(len, found.values()))
    if used > BYTES_MAX:
        what = f"the attachments have {used} bytes, and may have {BYTES_MAX}"
        raise ResourceExceeded(what, limit="output", used=used, max=BYTES_MAX)
    paths = [one for one in wanted if isinstance(one, str)]
    return {**found, **(await threads.call(lambda: _files(paths, ctx, BYTES_MAX - used)))} if paths else found


def _files(paths: Sequence[str], ctx: Ctx, left: int) -> dict[str, bytes]:
    found = {}
    with Workspace(ctx.workdir, stop=lambda: ctx.cancelled) as files:
        for path in paths:
            found[path] = files.whole(path, left)
            left -= len(found[path])
    return found
