"""What goes out of this machine, as the settings say: mail, all that speaks HTTP, models, servers of others."""

from collections.abc import Iterator

from everstep.adapters.secrets import KnownSecrets
from everstep.adapters.threads import Threads
from everstep.adapters.tools.reaching import reaching
from everstep.ports.adapter import ToolAdapter
from everstep.settings import Settings


def outward(settings: Settings, threads: Threads, secrets: KnownSecrets) -> Iterator[ToolAdapter]:
    """All of it that is configured; what nobody asked for is not even loaded."""
    if settings.said["mail.server"].value:
        from everstep.adapters.tools.mail_settings import mail_of

        yield mail_of(settings, threads, secrets)
    yield from reaching(settings, threads, secrets)
    if settings.tables("llm.endpoints"):
        from everstep.adapters.tools.llm_settings import llm_of

        yield llm_of(settings, secrets)
    if settings.tables("mcp.servers"):
        from everstep.adapters.tools.mcp_servers import mcp_tools

        yield from mcp_tools(settings, secrets)
    if settings.said["browser.enabled"].value:
        from everstep.adapters.tools.browsing import browser_of

        yield browser_of(settings)
