"""The operator's account, and the message that a call means: its recipients, its name, its bytes."""

import mimetypes
import re
from collections.abc import Mapping
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final, Literal

from everstep.adapters.net import parse_url
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Call, Misconfigured

_ADDRESS: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([A-Za-z0-9-]{1,63}\.)*[A-Za-z0-9-]{1,63}")


@record
class MailSettings:
    """The operator's account."""

    host: str
    port: int
    encrypted: bool
    """From the first byte; else it is asked for, and only a server of this machine may do without."""
    sender: str
    user: str = ""
    password: str = ""
    blocked: tuple[str, ...] = ()
    internal: tuple[str, ...] = ()
    """Domains that need no leave."""
    recipients_max: int = 20
    lookup: Path | str | None = None
    """A Maildir where sent mail arrives, or a URL with {message_id}."""
    confirm: Literal["accepted", "delivered"] = "accepted"
    marks: Path = Path(".everstep") / "mail"


def listed(value: Any) -> list[str]:
    """One address, or several."""
    return [value] if isinstance(value, str) else [str(one) for one in value or ()]


def recipients(arguments: JsonObject) -> list[str]:
    """Everybody who gets it, each once."""
    return [*dict.fromkeys(one for name in ("to", "cc", "bcc") for one in listed(arguments.get(name)))]


def is_address(text: str) -> bool:
    """Whether it is one plain address."""
    return _ADDRESS.fullmatch(text) is not None


def is_within(address: str, domains: tuple[str, ...]) -> bool:
    """Whether it belongs to one of these domains, or to one below."""
    domain = address.rpartition("@")[2].lower()
    return any(domain == one.lower() or domain.endswith(f".{one.lower()}") for one in domains)


def message_id(call: Call, settings: MailSettings) -> str:
    """The same for every repeat of one call."""
    return f"<{call.idempotency_key}@{settings.sender.rpartition('@')[2]}>"


def composed(call: Call, settings: MailSettings, attached: Mapping[str, bytes]) -> EmailMessage:
    """The message; `bcc` stays in the envelope."""
    arguments: dict[str, Any] = call.arguments
    message = EmailMessage(policy=SMTP)
    try:
        message["From"] = settings.sender
        message["To"] = ", ".join(listed(arguments["to"]))
        if arguments.get("cc"):
            message["Cc"] = ", ".join(listed(arguments["cc"]))
        message["Subject"] = arguments["subject"]
        message["Message-ID"] = message_id(call, settings)
        message["Date"] = formatdate()
    except ValueError as error:
        raise Misconfigured(f"a header cannot be sent: {error}", code="mail_header") from error
    message.set_content(arguments["text"])
    if arguments.get("html"):
        message.add_alternative(arguments["html"], subtype="html")
    for path, data in attached.items():
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        maintype, _, subtype = kind.partition("/")
        message.add_attachment(data, maintype=maintype, subtype=subtype, filename=path.rpartition("/")[2])
    return message


def told(call: Call, settings: MailSettings, *, accepted: list[str], reply: str) -> JsonObject:
    """What is known once a server has it."""
    everybody: list[JsonValue] = [*accepted]
    return {
        "message_id": message_id(call, settings),
        "accepted": everybody,
        "refused": [],
        "reply": reply,
        "delivery": "accepted",
    }


def server_of(text: str) -> tuple[str, int, bool]:
    """`smtp://host:587` or `smtps://host`; raises ToolError."""
    scheme, _, rest = text.partition("://")
    if scheme not in {"smtp", "smtps"}:
        raise Misconfigured(f"{text!r} is not smtp://… or smtps://…", code="net_url")
    url = parse_url(f"http://{rest}")
    port = url.port if ":" in rest.rpartition("]")[2] else 465 if scheme == "smtps" else 587
    return url.host, port, scheme == "smtps"
