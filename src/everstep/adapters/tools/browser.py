"""`browser.read`, `browser.screenshot`, `browser.act`: pages as a person sees them, reached as the guard allows."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from everstep.adapters.browser.acting import act
from everstep.adapters.browser.page import Sheet
from everstep.adapters.browser.shared import SharedBrowser, nowhere
from everstep.adapters.browser.visit import Visit, kept, last_seen
from everstep.adapters.isolation.bounds import Walls
from everstep.adapters.net import Client, parse_url
from everstep.adapters.paths import names_of
from everstep.adapters.tools.browser_specs import SPECS
from everstep.domain.plan import Effect
from everstep.domain.values import JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Health, ToolError, ToolSpec

_FAILED_PICTURE_S: Final = 5.0


class BrowserTools(ToolAdapter):
    """The family; empty unless it is enabled."""

    def __init__(self, browser: SharedBrowser | None, client: Client, walls: Walls, kept: Path) -> None:
        """`kept` is where sessions go."""
        self._browser = browser
        self._client = client
        self._walls = walls
        self._kept = kept

    def tools(self) -> Sequence[ToolSpec]:
        """None, if the configuration does not enable them."""
        return SPECS if self._browser is not None else ()

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """Addresses that are none, and files outside."""
        problems = []
        urls = [("/url", call.arguments.get("url"))]
        for at, one in enumerate(_actions(call)):
            urls.append((f"/actions/{at}/goto", one.get("goto")))
        for pointer, url in urls:
            try:
                parse_url(url) if isinstance(url, str) else None
            except ToolError as error:
                problems.append((pointer, str(error)))
        try:
            names_of(str(call.arguments.get("path", "x")))
        except ToolError as error:
            problems.append(("/path", str(error)))
        return problems

    def effect_of(self, call: Call) -> Effect | None:
        """A picture that is kept as a file is a write."""
        return Effect.IDEMPOTENT if call.tool == "browser.screenshot" and "path" in call.arguments else None

    def target(self, call: Call) -> str:
        """The host."""
        try:
            return parse_url(str(call.arguments.get("url"))).place
        except ToolError:
            return call.tool

    async def health(self) -> Health:
        """Whether it starts and opens a blank page."""
        if self._browser is None:
            return Health()
        try:
            async with self._browser.context(nowhere) as (context, running):
                await running.answered(context.new_page())
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is not well
            return Health(status="unhealthy", detail=str(error)[:200])
        return Health(status="healthy")

    async def close(self) -> None:
        """The worker stops."""
        if self._browser is not None:
            await self._browser.close()

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """In a fresh context, behind a proxy of its own."""
        arguments: dict[str, Any] = call.arguments
        assert self._browser is not None
        name = arguments.get("session")
        session = self._kept / str(ctx.task_id) / f"{name}.json" if name else None
        visit = Visit(
            browser=self._browser,
            client=self._client,
            url=arguments["url"],
            tool=call.tool,
            needs=self._walls.needed(call.tool, trusted=ctx.origin.trusted),
            session=session,
        )
        async with visit.page(ctx) as sheet:
            try:
                await sheet.open(arguments["url"])
                if "wait" in arguments:
                    await sheet.wait(arguments["wait"])
                return await self._done(call, ctx, sheet)
            except ToolError as error:
                await self._picture_of(error, sheet, ctx)
                raise

    async def _done(self, call: Call, ctx: Ctx, sheet: Sheet) -> JsonValue:
        arguments: dict[str, Any] = call.arguments
        if call.tool == "browser.read":
            return await sheet.read(arguments.get("format", "text"))
        if call.tool == "browser.screenshot":
            kind = arguments.get("format", "png")
            return kept(await sheet.picture(arguments.get("area", "viewport"), kind), arguments, ctx, sheet)
        for one in arguments["actions"]:
            await act(sheet, one, ctx.workdir)
        seen = last_seen(await sheet.picture("viewport", "png"), ctx, "done")
        return {"extracted": sheet.extracted, "final_url": sheet.page.url, "status": sheet.status, "screenshot": seen}

    async def _picture_of(self, error: ToolError, sheet: Sheet, ctx: Ctx) -> None:
        """What the page looked like when it went wrong, if it can still be seen."""
        with contextlib.suppress(Exception):  # the failure is what counts
            async with asyncio.timeout(_FAILED_PICTURE_S):
                image = await sheet.picture("viewport", "png")
            error.details = {**(error.details or {}), "screenshot": last_seen(image, ctx, "failed")}


def _actions(call: Call) -> list[dict[str, JsonValue]]:
    said = call.arguments.get("actions")
    return [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []
