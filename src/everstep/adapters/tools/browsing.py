"""The browser tools, made as the settings say."""

from everstep.adapters.browser.shared import SharedBrowser
from everstep.adapters.isolation.bounds import walls_of
from everstep.adapters.net import Client
from everstep.adapters.tools.browser import BrowserTools
from everstep.adapters.tools.reaching import guard_of
from everstep.domain.values import JsonObject
from everstep.settings import Settings
from everstep.settings.values import beside


async def browser_walls(settings: Settings) -> JsonObject | None:
    """What stands around the browser, by starting it, or why it does not start; None if there is none."""
    browser = _shared(settings)
    if browser is None:
        return None
    try:
        return {**await browser.tried(), "program": browser.found()}
    except Exception as error:  # noqa: BLE001 -- whatever it is, it does not start
        return {"trouble": str(error)[:200], "what_to_do": getattr(error, "what_to_do", None)}


def _shared(settings: Settings) -> SharedBrowser | None:
    if not settings.said["browser.enabled"].value:
        return None
    base = walls_of(settings).uid
    uid = None if base is None else base + 1  # programs may not touch it, nor are its processes counted as theirs
    return SharedBrowser(executable=str(settings.said["browser.executable"].value), uid=uid)


def browser_of(settings: Settings) -> BrowserTools:
    """The family; empty unless `browser.enabled`."""
    kept = beside(settings.home, "browser")
    return BrowserTools(_shared(settings), Client(guard=guard_of(settings)), walls_of(settings), kept)
