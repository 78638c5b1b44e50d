"""`file.*`: files of the task's workspace, and nothing beyond it.

Everything happens in a thread, below `adapters/files`. Writing is idempotent: the same call again finds its own
content there, and removes what a killed call left behind.
"""

import codecs
from collections.abc import Callable, Sequence
from typing import Final

from everstep.adapters.disk import Reservations
from everstep.adapters.files import Content, Workspace
from everstep.adapters.threads import Threads
from everstep.adapters.tools.file_changes import BYTES_MAX, PLANNERS, Work, change, take_back
from everstep.adapters.tools.file_roots import Roots
from everstep.adapters.tools.file_specs import CHANGES, READ_BYTES, READS
from everstep.adapters.tools.listing import listing, stat_of
from everstep.adapters.undo_journal import UNDO_BYTES, UNDO_WINDOW_S, UndoJournal
from everstep.domain.limits import lower
from everstep.domain.values import JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Misconfigured, Prior, ToolError, ToolSpec

BYTES_A_SECOND: Final = 100e6
"""What a usual disk takes, flushed."""


class FileTools(ToolAdapter):
    """Reading, listing, changing, and taking changes back."""

    def __init__(
        self,
        threads: Threads,
        *,
        undo_bytes: int = UNDO_BYTES,
        undo_window_s: float = UNDO_WINDOW_S,
        roots: Roots | None = None,
    ) -> None:
        self._threads = threads
        self._roots = roots or Roots()
        self._disk = Reservations()
        self._undo_bytes = undo_bytes
        self._undo_window_s = undo_window_s

    def tools(self) -> Sequence[ToolSpec]:
        """All of them."""
        return (*READS, *CHANGES)

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """Paths that no file of the workspace can have."""
        problems: list[tuple[str, str]] = []
        ops = call.arguments.get("ops")
        batch = enumerate(ops) if isinstance(ops, list) else [(None, call.arguments)]
        for number, one in batch:
            for name in ("path", "from", "to"):
                value = one.get(name) if isinstance(one, dict) else None
                try:
                    self._roots.check(value if isinstance(value, str) else ".")
                except ToolError as exc:
                    problems.append((f"/{name}" if number is None else f"/ops/{number}/{name}", str(exc)))
        if "text" in call.arguments and "artifact" in call.arguments:
            problems.append(("/artifact", "goes not together with 'text'"))
        return tuple(problems)

    def estimate(self, call: Call) -> Prior | None:
        """What is written takes as long as it is large; alike are sizes within a factor of eight."""
        if call.tool not in {"file.write", "file.append"} or "text" not in call.arguments:
            return None
        size = len(str(call.arguments.get("text", "")))
        middle_s = 0.006 + size / BYTES_A_SECOND
        return Prior(
            p10_s=middle_s / 3, p50_s=middle_s, p90_s=middle_s * 5, size_class=f"8^{max(size, 1).bit_length() // 3}"
        )

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Do it in a thread, in the task's own folder."""
        handle = call.arguments.get("artifact")
        brought = await ctx.kept(handle) if isinstance(handle, dict) else None
        said = {name: value for name, value in call.arguments.items() if name != "artifact"}
        placed = self._roots.place(call.tool, said)
        folder = self._roots.folder(placed.name, ctx.workdir, change=call.tool in PLANNERS)

        def work() -> tuple[JsonValue, int]:
            with Workspace(folder, stop=lambda: ctx.cancelled) as files:
                if call.tool not in PLANNERS:
                    return _READS[call.tool](files, **placed.arguments), 0
                wanted = self._work(files, call, ctx)
                wanted.brought = brought
                if placed.source is not None:
                    wanted.brought = self._brought(*placed.source, ctx)
                return change(wanted, call.tool, placed.arguments, self._disk), wanted.written_bytes

        told, written = await self._threads.call(work)
        if written:
            ctx.usage(disk_bytes=written)
        return placed.told(told)

    def _brought(self, root: str, path: str, ctx: Ctx) -> bytes:
        """What a copy from another root brings."""
        with Workspace(self._roots.folder(root, ctx.workdir, change=False), stop=lambda: ctx.cancelled) as files:
            return files.whole(path, BYTES_MAX)

    async def undo(self, call: Call, output: JsonValue, ctx: Ctx) -> None:  # noqa: ARG002 -- what was is on record
        """Put back what was, unless somebody has changed it since."""
        placed = self._roots.place(call.tool, call.arguments)
        folder = self._roots.folder(placed.name, ctx.workdir, change=True)

        def work() -> None:
            with Workspace(folder, stop=lambda: ctx.cancelled) as files:
                take_back(self._work(files, call, ctx))

        await self._threads.call(work)

    def _work(self, files: Workspace, call: Call, ctx: Ctx) -> Work:
        journal = UndoJournal(ctx.workdir, bytes_max=self._undo_bytes, window_s=self._undo_window_s)
        most = lower(None if ctx.bounds is None else ctx.bounds.disk_bytes, ctx.left.disk_bytes)
        return Work(files=files, journal=journal, key=call.idempotency_key, disk_bytes_max=most)


def _read(files: Workspace, path: str, range: dict[str, int] | None = None) -> JsonValue:
    start = (range or {}).get("start", 0)
    length = (range or {}).get("length", READ_BYTES)
    content = files.read(path, start, length)
    return {
        "path": path,
        "text": _text(path, content, start),
        "bytes": content.size_bytes,
        "sha256": content.sha256,
        "truncated": len(content.data) < content.size_bytes,
    }


def _text(path: str, content: Content, start: int) -> str:
    """The bytes as text; a character cut by the range is left out."""
    data = content.data
    while start and data and data[0] & 0xC0 == 0x80 and len(content.data) - len(data) < 3:
        data = data[1:]
    is_end = start + len(content.data) >= content.size_bytes
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(data, final=is_end)
    except UnicodeDecodeError as exc:
        raise Misconfigured(f"'{path}' is not UTF-8 text (byte {start + exc.start})", code="file_not_text") from exc


_READS: Final[dict[str, Callable[..., JsonValue]]] = {"file.read": _read, "file.stat": stat_of, "file.list": listing}
