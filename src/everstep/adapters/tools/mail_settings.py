"""The account that the settings name."""

from pathlib import Path

from everstep.adapters.mail.account import MailSettings, server_of
from everstep.adapters.net.client import Client
from everstep.adapters.net.url import parse_url
from everstep.adapters.secrets import KnownSecrets
from everstep.adapters.threads import Threads
from everstep.adapters.tools.mail import MailTools
from everstep.adapters.tools.reaching import guard_of
from everstep.domain.errors import SettingsError
from everstep.ports.tool import ToolError
from everstep.settings import Settings


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
    blocked, internal = (settings.said[f"mail.{name}_domains"].value for name in ("blocked", "internal"))
    most, delivered = said["recipients"], settings.said["mail.confirm"].value == "delivered"
    if delivered and not said["lookup"]:
        raise SettingsError(
            "'mail.confirm' is 'delivered', and there is no 'mail.lookup'", what_to_do="say where sent mail arrives"
        )
    account = MailSettings(
        host=host,
        port=port,
        encrypted=encrypted,
        sender=str(said["sender"]),
        user=user,
        password=secrets.get(secret.removeprefix("secret:"), settings.owner) or "" if secret else "",
        blocked=blocked if isinstance(blocked, tuple) else (),
        internal=internal if isinstance(internal, tuple) else (),
        recipients_max=most if isinstance(most, int) else 20,
        lookup=_place(str(said["lookup"])),
        confirm="delivered" if delivered else "accepted",
        marks=settings.home.parent / "mail",
    )
    client = Client(guard=guard_of(settings)) if isinstance(account.lookup, str) else None
    return MailTools(account, threads, secrets.redactor, client)


def _place(text: str) -> Path | str | None:
    """Where sent mail arrives; raises SettingsError."""
    if "://" not in text:
        return Path(text) if text else None
    try:
        parse_url(text.replace("{message_id}", "m"))
    except ToolError as error:
        raise SettingsError(f"'mail.lookup': {error}", what_to_do="correct the URL") from error
    if "{message_id}" not in text:
        raise SettingsError("'mail.lookup' has no {message_id}", what_to_do="say where in the URL it goes")
    return text
