"""What goes out of this machine, as the settings say: mail, all that speaks HTTP, models, servers of others."""

from collections.abc import Iterator
from pathlib import Path

from everstep.adapters.secrets import KnownSecrets
from everstep.adapters.threads import Threads
from everstep.adapters.tools.browsing import browser_of
from everstep.adapters.tools.llm_settings import llm_of
from everstep.adapters.tools.mail import MailSettings, MailTools, server_of
from everstep.adapters.tools.mcp_servers import mcp_tools
from everstep.adapters.tools.reaching import reaching
from everstep.domain.errors import SettingsError
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import ToolError
from everstep.settings import Settings


def outward(settings: Settings, threads: Threads, secrets: KnownSecrets) -> Iterator[ToolAdapter]:
    """All of it."""
    yield mail_of(settings, threads, secrets)
    yield from reaching(settings, threads, secrets)
    yield llm_of(settings, secrets)
    yield from mcp_tools(settings, secrets)
    yield browser_of(settings)


def mail_of(settings: Settings, threads: Threads, secrets: KnownSecrets) -> MailTools:
    """The tool, or an empty family where no server is named; raises SettingsError."""
    said = {name: settings.said[f"mail.{name}"].value for name in ("server", "sender", "auth", "lookup", "recipients")}
    if not said["server"]:
        return MailTools(None, threads, secrets.redactor)
    if not said["sender"]:
        raise SettingsError("'mail.server' needs 'mail.sender'", what_to_do="say which address mail comes from")
    try:
        host, port, encrypted = server_of(str(said["server"]))
    except ToolError as error:
        raise SettingsError(f"'mail.server': {error}", what_to_do="write smtp://host:587 or smtps://host") from error
    user, _, secret = str(said["auth"] or "").partition(":")
    blocked, most = settings.said["mail.blocked_domains"].value, said["recipients"]
    account = MailSettings(
        host=host,
        port=port,
        encrypted=encrypted,
        sender=str(said["sender"]),
        user=user,
        password=secrets.get(secret.removeprefix("secret:"), settings.owner) or "" if secret else "",
        blocked=blocked if isinstance(blocked, tuple) else (),
        recipients_max=most if isinstance(most, int) else 20,
        lookup=Path(str(said["lookup"])) if said["lookup"] else None,
        marks=settings.home.parent / "mail",
    )
    return MailTools(account, threads, secrets.redactor)
