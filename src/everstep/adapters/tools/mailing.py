"""What goes out of this machine, as the settings say: mail, all that speaks HTTP, models, servers of others."""

from collections.abc import Iterator

from everstep.adapters.secrets import KnownSecrets
from everstep.adapters.threads import Threads
from everstep.adapters.tools.browsing import browser_of
from everstep.adapters.tools.llm_settings import llm_of
from everstep.adapters.tools.mail_settings import mail_of
from everstep.adapters.tools.mcp_servers import mcp_tools
from everstep.adapters.tools.reaching import reaching
from everstep.ports.adapter import ToolAdapter
from everstep.settings import Settings


def outward(settings: Settings, threads: Threads, secrets: KnownSecrets) -> Iterator[ToolAdapter]:
    """All of it."""
    yield mail_of(settings, threads, secrets)
    yield from reaching(settings, threads, secrets)
    yield llm_of(settings, secrets)
    yield from mcp_tools(settings, secrets)
    yield browser_of(settings)
