"""The browser tools, made as the settings say."""

from everstep.adapters.browser.shared import SharedBrowser
from everstep.adapters.isolation.bounds import walls_of
from everstep.adapters.net import Client
from everstep.adapters.tools.browser import BrowserTools
from everstep.adapters.tools.reaching import guard_of
from everstep.settings import Settings
from everstep.settings.values import beside


def browser_of(settings: Settings) -> BrowserTools:
    """The family; empty unless `browser.enabled`."""
    on = bool(settings.said["browser.enabled"].value)
    browser = SharedBrowser(executable=str(settings.said["browser.executable"].value)) if on else None
    kept = beside(settings.home, "browser")
    return BrowserTools(browser, Client(guard=guard_of(settings)), walls_of(settings), kept)
