"""Files of the workspace that go along with a message."""

from collections.abc import Iterator, Sequence
from typing import Final

from everstep.adapters.files import Workspace
from everstep.adapters.paths import names_of
from everstep.ports.tool import Ctx, ToolError

BYTES_MAX: Final = 10 << 20


def path_problems(paths: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Paths that lead out, or nowhere."""
    for at, path in enumerate(paths):
        try:
            names_of(path)
        except ToolError as error:
            yield f"/attachments/{at}", str(error)


def attached_files(paths: Sequence[str], ctx: Ctx) -> dict[str, bytes]:
    """What they hold; raises ResourceExceeded where they are too large together."""
    found, left = {}, BYTES_MAX
    with Workspace(ctx.workdir, stop=lambda: ctx.cancelled) as files:
        for path in paths:
            found[path] = files.whole(path, left)
            left -= len(found[path])
    return found
