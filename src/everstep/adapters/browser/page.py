"""What can be done with a page: open it, wait for something of it, read it, act on it. No fixed sleeps.

Playwright's errors end here: each becomes one of ours.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from everstep.adapters.browser.way_out import WayOut
from everstep.adapters.net import parse_url
from everstep.domain.failure import EffectState
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Denied, Impossible, Misconfigured, ToolError, Uncertain

LOAD_S: Final = 10.0
ACTION_S: Final = 5.0
PICTURE_S: Final = 5.0
TEXT_CHARS: Final = 500_000
LINKS_MAX: Final = 500
HEIGHT_MAX: Final = 16_384
SEEN: Final = """() => [...document.querySelectorAll('button,a,input,select,textarea,[role=button]')].slice(0, 12)
  .map(e => e.tagName.toLowerCase() + (e.id ? '#' + e.id : '') + ' '
    + (e.innerText || e.name || '').trim().slice(0, 40))"""
LINKS: Final = """n => [...document.querySelectorAll('a[href]')].slice(0, n)
  .map(a => ({text: (a.innerText || '').trim().slice(0, 200), url: a.href}))"""
_CERTAIN: Final = (EffectState.NONE, EffectState.UNKNOWN, EffectState.MADE)
MARKDOWN: Final = r"""() => {
  const out = [];
  const inline = n => n.nodeType === 3 ? n.textContent.replace(/\s+/g, ' ')
    : n.nodeType !== 1 || /^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE)$/.test(n.tagName) ? ''
    : n.tagName === 'BR' ? '\n'
    : n.tagName === 'A' && n.href ? '[' + [...n.childNodes].map(inline).join('').trim() + '](' + n.href + ')'
    : [...n.childNodes].map(inline).join('');
  const walk = n => {
    if (n.nodeType !== 1 || /^(SCRIPT|STYLE|NOSCRIPT|TEMPLATE|HEAD)$/.test(n.tagName)) return;
    const h = /^H([1-6])$/.exec(n.tagName);
    if (h) out.push('#'.repeat(+h[1]) + ' ' + inline(n).trim());
    else if (n.tagName === 'LI') out.push('- ' + inline(n).trim());
    else if (n.tagName === 'PRE') out.push('```\n' + n.innerText + '\n```');
    else if (/^(P|TD|TH|BLOCKQUOTE|LABEL|BUTTON)$/.test(n.tagName) || !n.children.length) out.push(inline(n).trim());
    else [...n.children].forEach(walk);
  };
  walk(document.body);
  return out.filter(Boolean).join('\n\n');
}"""


@dataclass(eq=False)
class Sheet:
    """One page of one attempt."""

    page: Any
    way: WayOut
    status: int | None = None
    effect_state: EffectState = EffectState.NONE
    """Of all that was done on it so far."""
    extracted: dict[str, JsonValue] = field(default_factory=dict)

    def begin(self) -> None:
        """Something is about to be done that may change the world: from here on nobody can say that it was not."""
        self.effect_state = max(self.effect_state, EffectState.UNKNOWN, key=_CERTAIN.index)

    def done(self) -> None:
        """It was."""
        self.effect_state = EffectState.MADE

    def blame(self, error: Exception) -> None:
        """Whatever ends the attempt, what was done before is not to be done again because of it."""
        if isinstance(error, (ToolError, PageStatus)) and self.effect_state is not EffectState.NONE:
            error.effect_state = self.effect_state

    async def open(self, url: str) -> None:
        """Load it; raises what the way there was, or its status."""
        from playwright.async_api import Error

        parse_url(url)
        try:
            response = await self.page.goto(url, timeout=LOAD_S * 1000)
        except Error as error:
            raise self._trouble(url, error) from error
        self.status = None if response is None else response.status
        if (why := self.way.trouble.get(parse_url(url).place)) is not None and self.status == 502:
            raise why
        if self.status is not None and self.status >= 400:
            raise PageStatus(f"{url} answered {self.status}", self.status)

    async def wait(self, wanted: Mapping[str, Any]) -> None:
        """Until it is so; raises `browser_element` with what was seen instead."""
        from playwright.async_api import TimeoutError as TooLong

        most = ACTION_S * 1000
        try:
            if "selector" in wanted:
                await self._wait_for(str(wanted["selector"]), str(wanted.get("state", "visible")), most)
            if "text" in wanted:
                await self.page.get_by_text(str(wanted["text"])).first.wait_for(timeout=most)
            if "url" in wanted:
                await self.page.wait_for_url(str(wanted["url"]), timeout=most)
            if wanted.get("network_idle"):
                await self.page.wait_for_load_state("networkidle", timeout=most)
        except TooLong:
            raise await self.missing(str(wanted)) from None

    async def _wait_for(self, selector: str, state: str, most: float) -> None:
        if state == "enabled":
            ready = "s => { const e = document.querySelector(s); return e && !e.disabled }"
            await self.page.wait_for_function(ready, arg=selector, timeout=most)
        else:
            await self.page.locator(selector).first.wait_for(state=state, timeout=most)

    async def read(self, form: str) -> JsonObject:
        """Title, text and links."""
        text = str(
            await self.page.evaluate(MARKDOWN) if form == "markdown" else await self.page.locator("body").inner_text()
        )
        return {
            "title": await self.page.title(),
            "text": text[:TEXT_CHARS],
            "truncated": len(text) > TEXT_CHARS,
            "links": await self.page.evaluate(LINKS, LINKS_MAX),
            "final_url": self.page.url,
            "status": self.status,
        }

    async def picture(self, area: JsonValue, kind: str) -> bytes:
        """An image, passwords covered."""
        options: dict[str, Any] = {"type": kind, "timeout": PICTURE_S * 1000}
        options["mask"] = [self.page.locator("input[type=password]")]
        if isinstance(area, dict):
            from playwright.async_api import TimeoutError as TooLong

            try:
                return bytes(await self.page.locator(str(area["selector"])).first.screenshot(**options))
            except TooLong:
                raise await self.missing(str(area["selector"])) from None
        if area == "full":
            size = await self.page.evaluate("() => [document.documentElement.scrollWidth, document.body.scrollHeight]")
            clip = {"x": 0, "y": 0, "width": max(size[0], 1), "height": max(min(size[1], HEIGHT_MAX), 1)}
            options |= {"full_page": True, "clip": clip}
        return bytes(await self.page.screenshot(**options))

    async def missing(self, wanted: str) -> ToolError:
        """The refusal that names what was looked for, and what there is."""
        seen: list[Any] = []
        with contextlib.suppress(Exception):  # a page that cannot be asked has shown nothing
            seen = await self.page.evaluate(SEEN)
        found = ", ".join(str(one).strip() for one in seen) or "nothing to click or fill"
        return Impossible(f"{wanted} was not found on {self.page.url}; there are: {found}", code="browser_element")

    def _trouble(self, url: str, error: Exception) -> ToolError:
        known = self.way.trouble.get(parse_url(url).place)
        words = str(error)
        if known is not None:
            return known
        if "ERR_CERT" in words or "ERR_SSL" in words:
            return Misconfigured(f"the certificate of {url} is not trusted: {_code(words)}", code="net_tls")
        if "ERR_UNSAFE_PORT" in words:
            return Denied(f"browsers do not go to the port of {url}", code="policy_denied")
        if "Timeout" in type(error).__name__:
            return Uncertain(f"{url} did not load within {LOAD_S:g} s", code="net_read")
        if "closed" in words or "crash" in words:
            return Uncertain("the browser ended", code="browser_crashed")
        return Uncertain(f"{url} could not be loaded: {_code(words)}", code="net_reset")


class PageStatus(Exception):
    """A page with the status of an error; `engine/classify` knows what such a status means."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status_code = status
        self.effect_state: EffectState | None = None
        self.retry_after = None


def _code(words: str) -> str:
    at = words.find("net::")
    return words[at + 5 :].split(maxsplit=1)[0] if at >= 0 else words[:120]
