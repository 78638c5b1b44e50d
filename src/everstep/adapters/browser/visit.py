"""One attempt's visit to the browser: a way out of its own, a page, an end that leaves nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from everstep.adapters.browser.page import Sheet
from everstep.adapters.browser.running import Running, too_busy, too_large
from everstep.adapters.browser.shared import SharedBrowser
from everstep.adapters.browser.way_out import WayOut
from everstep.adapters.files import Expected, Workspace
from everstep.adapters.isolation.bounds import bounds_of
from everstep.adapters.isolation.program import Bounds
from everstep.adapters.net import Client, asked_by, parse_url
from everstep.domain.usage import Measured
from everstep.domain.values import JsonObject
from everstep.ports.tool import Ctx, Denied, ToolError, Uncertain
from everstep.wire.times import to_text

WATCH_S: Final = 0.5
VIEW: Final[JsonObject] = {"width": 1280, "height": 800}


@dataclass(eq=False, kw_only=True)
class Visit:
    """Where to, in whose browser, with which cookies."""

    browser: SharedBrowser
    client: Client
    url: str
    tool: str
    needs: str
    """`restricted`: not without all walls."""
    session: Path | None = None
    """Cookies that are kept for later steps of the task."""
    _over: list[ToolError] = field(default_factory=list)
    _cpu_s: float = 0.0
    _peak_bytes: int = 0
    """Of a browser of its own; what one visitor of a shared one used, nobody can tell."""

    @asynccontextmanager
    async def page(self, ctx: Ctx) -> AsyncIterator[Sheet]:
        """A page that is not opened yet; what goes wrong with the browser itself is ours to name."""
        way = WayOut(self.client, asked_by(ctx, "url", "read"), parse_url(self.url).place)
        limited = ctx.bounds is not None and bool(ctx.bounds.memory_bytes or ctx.bounds.cpu_time_ms)
        own = bounds_of(ctx) if limited else None
        known = self.session is not None and self.session.exists()
        options: JsonObject = {"storage_state": str(self.session)} if known else {}
        watching: asyncio.Task[None] | None = None
        held: JsonObject | None = None
        sheet: Sheet | None = None
        try:
            own_bytes = None if own is None else own.memory_bytes
            async with self.browser.context(way.open, own_bytes=own_bytes, viewport=VIEW, **options) as visited:
                context, running = visited
                held = running.held
                self._refuse_weak(running)
                if own is not None:
                    watching = asyncio.ensure_future(self._watch(running, own))
                try:
                    sheet = Sheet(await running.answered(context.new_page()), way)
                    yield sheet
                    if self.session is not None:
                        self.session.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                        await context.storage_state(path=str(self.session))
                        self.session.chmod(0o600)
                except Exception:
                    if own is not None and not self._over:
                        await self._too_much(running, own)
                    raise
        except Exception as error:
            named = self._named(error)
            if sheet is not None:
                sheet.blame(named)
            raise named from error
        finally:
            if watching is not None:
                watching.cancel()
            await way.close()
            ctx.measured(
                Measured(
                    cpu_s=round(self._cpu_s, 3),
                    memory_peak_bytes=self._peak_bytes,
                    bytes_in=way.bytes_in,
                    bytes_out=way.bytes_out,
                    containment=held,
                )
            )

    def _refuse_weak(self, running: Running) -> None:
        if self.needs == "restricted" and running.held["level"] != "restricted":
            missing = running.held["missing"]
            lacking = ", ".join(map(str, missing if isinstance(missing, list) else ()))
            raise Denied(
                f"'{self.tool}' needs walls that do not stand around the browser: {lacking}",
                code="containment_unavailable",
                what_to_do=f'if it may run without: [containment] require = {{"{self.tool}" = "limited"}}',
            )

    async def _watch(self, running: Running, own: Bounds) -> None:
        """A browser of its own is kept to the step's limits."""
        while True:
            if await self._too_much(running, own):
                await asyncio.to_thread(running.kill)
                return
            await asyncio.sleep(WATCH_S)

    async def _too_much(self, running: Running, own: Bounds) -> bool:
        """Whether it is, or was when the kernel, which is faster than we are, had to end something of it."""
        used, self._cpu_s = await asyncio.to_thread(lambda: (running.memory(), running.cpu_s()))
        self._peak_bytes = max(self._peak_bytes, used)
        if running.memory_ran_out():
            used = max(used, own.memory_bytes + 1)
        if used > own.memory_bytes:
            self._over.append(too_large(used, own.memory_bytes))
        elif self._cpu_s > own.cpu_s:
            self._over.append(too_busy(self._cpu_s, own.cpu_s))
        return bool(self._over)

    def _named(self, error: Exception) -> Exception:
        """What somebody else's library raised, in our words."""
        if self._over:
            return self._over[0]
        if not type(error).__module__.startswith("playwright"):
            return error
        return Uncertain(f"the browser ended: {str(error)[:200]}", code="browser_crashed")


def kept(image: bytes, arguments: dict[str, Any], ctx: Ctx, sheet: Sheet) -> JsonObject:
    """The picture as an artifact, and in a file of the workspace where one is named."""
    kind = arguments.get("format", "png")
    picture = ctx.artifact(f"{_name(ctx)}.{kind}", image, f"image/{kind}").handle()
    path = arguments.get("path")
    if path is not None:
        with Workspace(ctx.workdir, stop=lambda: ctx.cancelled) as files:
            files.write(path, image, key=ctx.idempotency_key, expected=Expected())
        ctx.usage(disk_bytes=len(image))
    return {"artifact": picture, "url": sheet.page.url, "taken_at": to_text(ctx.now()), "path": path}


def last_seen(image: bytes, ctx: Ctx, word: str) -> JsonObject:
    """What a page looked like at the end, well or not."""
    return ctx.artifact(f"{_name(ctx)}-{word}.png", image, "image/png").handle()


def _name(ctx: Ctx) -> str:
    return ctx.step_id.replace("/", "_")
