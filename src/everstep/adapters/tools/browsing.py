"""The browser tools, made as the settings say."""

from everstep.adapters.browser.shared import SharedBrowser
from everstep.adapters.isolation.bounds import walls_of
from everstep.adapters.net import Client
from everstep.adapters.tools.browser import BrowserTools
from everstep.adapters.tools.reaching import guard_of
from everstep.domain.values import JsonObject
from everstep.settings import Settings
from everstep.settings.values import beside


def browser_walls(settings: Settings) -> JsonObject | None:
    """What stands around the browser; None if there is none."""
    browser = _shared(settings)
    return None if browser is None else {**browser.containment(), "program": browser.found()}


def _shared(settings: Settings) -> SharedBrowser | None:
    on = bool(settings.said["browser.enabled"].value)
    return SharedBrowser(executable=str(settings.said["browser.executable"].value)) if on else None


def browser_of(settings: Settings) -> BrowserTools:
    """The family; empty unless `browser.enabled`."""
    kept = beside(settings.home, "browser")
    return BrowserTools(_shared(settings), Client(guard=guard_of(settings)), walls_of(settings), kept)
