"""`mail.send`: one message over SMTP, named by its idempotency key, so that a lost answer can be looked up.

Before the final dot a mark is written: no mark, nothing was sent; a mark, and the place where sent mail is kept
(`mail.lookup`) says whether it arrived. Sender and server come from the configuration, no header from a plan.
"""

import contextlib
import hashlib
import mimetypes
import os
import re
import smtplib
import socket
import ssl
from collections.abc import Sequence
from dataclasses import replace
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final

from everstep.adapters.files import Workspace
from everstep.adapters.net import parse_url
from everstep.adapters.paths import names_of
from everstep.adapters.threads import Threads
from everstep.adapters.tools.family import closed, spec_of
from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.redact import Redactor
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import (
    Call,
    Ctx,
    Denied,
    Health,
    Impossible,
    Misconfigured,
    Probed,
    ToolError,
    ToolSpec,
    Transient,
    Uncertain,
)

TIMEOUT_S: Final = 15.0
ATTACHED_BYTES_MAX: Final = 10 << 20
TEXT_CHARS_MAX: Final = 1_000_000
_ADDRESS: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([A-Za-z0-9-]{1,63}\.)*[A-Za-z0-9-]{1,63}")
_PRIVATE: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_PERMANENT: Final = frozenset({500, 501, 502, 503, 504, 550, 551, 553})


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
    recipients_max: int = 20
    lookup: Path | None = None
    """A Maildir where sent mail arrives."""
    marks: Path = Path(".everstep") / "mail"


class MailTools(ToolAdapter):
    """The one tool; it is there only if a server is configured."""

    def __init__(self, settings: MailSettings | None, threads: Threads, redactor: Redactor) -> None:
        self._settings = settings
        self._threads = threads
        self._redactor = redactor

    def tools(self) -> Sequence[ToolSpec]:
        """None without a server."""
        return () if self._settings is None else (_SPEC,)

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """Addresses, headers and contents that are not sent."""
        arguments: dict[str, Any] = call.arguments
        problems = []
        everybody = recipients(arguments)
        for name in ("to", "cc", "bcc"):
            for address in _listed(arguments.get(name)):
                if not _ADDRESS.fullmatch(address):
                    problems.append((f"/{name}", f"{address!r} is not one plain address"))
                elif self._is_blocked(address):
                    problems.append((f"/{name}", f"mail to {address.rpartition('@')[2]} is blocked"))
        if self._settings is not None and len(everybody) > self._settings.recipients_max:
            problems.append(("/to", f"{len(everybody)} recipients, and {self._settings.recipients_max} are allowed"))
        for at, path in enumerate(_listed(arguments.get("attachments"))):
            try:
                names_of(path)
            except ToolError as error:
                problems.append((f"/attachments/{at}", str(error)))
        subject = str(arguments.get("subject", ""))
        if any(ord(character) < 32 or ord(character) == 127 for character in subject):
            problems.append(("/subject", "holds a line break or another control character"))
        return problems

    def target(self, call: Call) -> str:
        """The server."""
        return call.tool if self._settings is None else f"{self._settings.host}:{self._settings.port}"

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Send it in a thread; nothing is sent that holds a secret or a private key."""
        arguments: dict[str, Any] = call.arguments
        paths = _listed(arguments.get("attachments"))
        attached = await self._threads.call(lambda: _read(paths, ctx)) if paths else {}
        text = "\n".join(str(arguments.get(name, "")) for name in ("subject", "text", "html"))
        text = "\n".join((text, *(data.decode("latin-1") for data in attached.values())))
        if _PRIVATE.search(text) or self._redactor.text(text) != text or "[secret:" in text:
            raise Denied("the message holds a private key or a secret", code="mail_content")
        settings = self._settings
        assert settings is not None
        message = composed(call, settings)
        for path, data in attached.items():
            kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
            maintype, _, subtype = kind.partition("/")
            message.add_attachment(data, maintype=maintype, subtype=subtype, filename=path.rpartition("/")[2])
        return await self._threads.call(lambda: _sent(message, call, settings), ctx.outlives)

    async def probe(self, call: Call) -> Probed:
        """No mark: the final dot was not sent. A mark: look where sent mail arrives."""
        settings = self._settings
        if settings is None:
            return Probed(result="unknown")
        if not mark_of(settings, call).exists():
            return Probed(result="not_done")
        if settings.lookup is None:
            return Probed(result="unknown")
        found = await self._threads.call(lambda: is_kept(settings, call))
        if not found:
            return Probed(result="not_done")
        return Probed(result="done", output=_told(call, settings, accepted=recipients(call.arguments), reply="found"))

    async def health(self) -> Health:
        """Greets and signs in; sends nothing."""
        if self._settings is None:
            return Health()
        settings = self._settings
        try:
            await self._threads.call(lambda: _connected(settings).close())
        except (ToolError, OSError, smtplib.SMTPException) as error:
            return Health(status="unhealthy", detail=str(error))
        return Health(status="healthy")

    def _is_blocked(self, address: str) -> bool:
        domain = address.rpartition("@")[2].lower()
        return self._settings is not None and any(
            domain == one.lower() or domain.endswith(f".{one.lower()}") for one in self._settings.blocked
        )


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(one) for one in value or ()]


def recipients(arguments: JsonObject) -> list[str]:
    """Everybody who gets it, each once."""
    return [*dict.fromkeys(one for name in ("to", "cc", "bcc") for one in _listed(arguments.get(name)))]


def message_id(call: Call, settings: MailSettings) -> str:
    """The same for every repeat of one call."""
    return f"<{call.idempotency_key}@{settings.sender.rpartition('@')[2]}>"


def composed(call: Call, settings: MailSettings) -> EmailMessage:
    """The message; `bcc` stays in the envelope."""
    arguments: dict[str, Any] = call.arguments
    message = EmailMessage(policy=SMTP)
    try:
        message["From"] = settings.sender
        message["To"] = ", ".join(_listed(arguments["to"]))
        if arguments.get("cc"):
            message["Cc"] = ", ".join(_listed(arguments["cc"]))
        message["Subject"] = arguments["subject"]
        message["Message-ID"] = message_id(call, settings)
        message["Date"] = formatdate()
    except ValueError as error:
        raise Misconfigured(f"a header cannot be sent: {error}", code="mail_header") from error
    message.set_content(arguments["text"])
    if arguments.get("html"):
        message.add_alternative(arguments["html"], subtype="html")
    return message


def _read(paths: Sequence[str], ctx: Ctx) -> dict[str, bytes]:
    """The files that go along; raises ResourceExceeded where they are too large together."""
    found, left = {}, ATTACHED_BYTES_MAX
    with Workspace(ctx.workdir, stop=lambda: ctx.cancelled) as files:
        for path in paths:
            found[path] = files.whole(path, left)
            left -= len(found[path])
    return found


def _connected(settings: MailSettings) -> smtplib.SMTP:
    trust = ssl.create_default_context()
    kind = smtplib.SMTP_SSL if settings.encrypted else smtplib.SMTP
    more: dict[str, Any] = {"context": trust} if settings.encrypted else {}
    server = kind(settings.host, settings.port, timeout=TIMEOUT_S, **more)
    server.ehlo_or_helo_if_needed()
    if not settings.encrypted and server.has_extn("starttls"):
        server.starttls(context=trust)
        server.ehlo()
    elif not settings.encrypted and settings.host not in {"localhost", "127.0.0.1", "::1"}:
        server.close()
        raise Denied(f"{settings.host} offers no encryption", code="mail_policy")
    if settings.user:
        server.login(settings.user, settings.password)
    return server


def _sent(message: EmailMessage, call: Call, settings: MailSettings) -> JsonObject:
    """The dialogue, step by step, so that it is known how far it came."""
    dotted = False
    try:
        with contextlib.closing(_connected(settings)) as server:
            _expect(server.mail(settings.sender), "the sender")
            answers = {address: server.rcpt(address) for address in recipients(call.arguments)}
            accepted = [address for address, (code, _) in answers.items() if code in {250, 251}]
            if not accepted:
                _expect(next(iter(answers.values())), "every recipient")
            _expect(server.docmd("DATA"), "the message", good=354)
            body = message.as_bytes(policy=SMTP)
            server.send(re.sub(rb"(?m)^\.", b"..", body).rstrip(b"\r\n") + b"\r\n")
            mark(settings, call)
            dotted = True
            server.send(b".\r\n")
            reply = server.getreply()
            try:
                _expect(reply, "the message")
            except ToolError:
                mark_of(settings, call).unlink(missing_ok=True)  # a definite no
                raise
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.quit()
    except smtplib.SMTPAuthenticationError as error:
        raise Denied(f"the server refuses the account: {error.smtp_code}", code="mail_auth") from error
    except smtplib.SMTPResponseException as error:
        raise judged(error.smtp_code, bytes(str(error.smtp_error), "utf-8"), "the greeting") from error
    except (OSError, smtplib.SMTPException) as error:
        what = f"the connection to {settings.host}:{settings.port}: {error}"
        if dotted:
            raise Uncertain(f"{what}; the message may have been sent", code="mail_lost") from error
        if isinstance(error, socket.gaierror):
            raise Misconfigured(f"there is no host '{settings.host}'", code="net_host") from error
        raise Transient(what, code="net_connect") from error
    refused = {
        address: f"{code} {_words(said)}" for address, (code, said) in answers.items() if address not in accepted
    }
    told = _told(call, settings, accepted=accepted, reply=f"{reply[0]} {_words(reply[1])}")
    return {**told, "refused": [{"address": address, "why": why} for address, why in refused.items()]}


def _told(call: Call, settings: MailSettings, *, accepted: list[str], reply: str) -> JsonObject:
    everybody: list[JsonValue] = [*accepted]
    return {
        "message_id": message_id(call, settings),
        "accepted": everybody,
        "refused": [],
        "reply": reply,
        "delivery": "accepted",
    }


def _expect(answer: tuple[int, bytes], what: str, good: int = 250) -> None:
    code, said = answer
    if code == good or (good == 250 and code == 251):
        return
    raise judged(code, said, what)


def judged(code: int, said: bytes, what: str) -> ToolError:
    """What an answer of the server means."""
    words = f"the server refused {what}: {code} {_words(said)}"
    if re.match(rb"\s*5\.7\.", said):
        return Denied(words, code="mail_policy")
    if 400 <= code < 500:
        return Transient(words, code=f"smtp_{code}")
    if code in {530, 534, 535}:
        return Denied(words, code="mail_auth")
    if code in _PERMANENT:
        return Misconfigured(words, code="mail_address")
    if code == 552:
        return TooLarge(words, code="mail_too_large")
    return Impossible(words, code="mail_rejected")


class TooLarge(ToolError):
    """The server takes no message of this size."""

    category = "resource"


def _words(said: bytes) -> str:
    return said.decode(errors="replace").replace("\n", " ")[:300]


# --- the mark before the final dot ---


def mark_of(settings: MailSettings, call: Call) -> Path:
    """Where it stands."""
    return settings.marks / hashlib.sha256(call.idempotency_key.encode()).hexdigest()[:32]


def mark(settings: MailSettings, call: Call) -> None:
    """From here on it may have been sent; durable before the dot is."""
    settings.marks.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(mark_of(settings, call), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    folder = os.open(settings.marks, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def is_kept(settings: MailSettings, call: Call) -> bool:
    """Whether a message of this name is where sent mail arrives."""
    assert settings.lookup is not None
    wanted = message_id(call, settings).encode()
    for part in ("new", "cur"):
        for file in (settings.lookup / part).glob("*"):
            with contextlib.suppress(OSError), file.open("rb") as kept:
                if wanted in kept.read(65_536):
                    return True
    return False


def server_of(text: str) -> tuple[str, int, bool]:
    """`smtp://host:587` or `smtps://host`; raises ToolError."""
    scheme, _, rest = text.partition("://")
    if scheme not in {"smtp", "smtps"}:
        raise Misconfigured(f"{text!r} is not smtp://… or smtps://…", code="net_url")
    url = parse_url(f"http://{rest}")
    port = url.port if ":" in rest.rpartition("]")[2] else 465 if scheme == "smtps" else 587
    return url.host, port, scheme == "smtps"


_TO: Final[JsonObject] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
    "x-everstep-kind": "checked",
}
_SPEC: Final = replace(
    spec_of(
        "mail.send",
        "Send a mail",
        "Send one message from the account of the configuration. It asks first.",
        takes={
            "to": {**_TO, "description": "An address, or several"},
            "cc": {**_TO, "description": "Who sees it too"},
            "bcc": {**_TO, "description": "Who sees it unseen"},
            "subject": {"type": "string", "maxLength": 900, "description": "One line"},
            "text": {"type": "string", "maxLength": TEXT_CHARS_MAX, "description": "The message"},
            "html": {"type": "string", "maxLength": TEXT_CHARS_MAX, "description": "The same, as a page"},
            "attachments": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 20,
                "x-everstep-kind": "checked",
                "description": "Files of the workspace, 10 MiB together",
            },
        },
        needs=("to", "subject", "text"),
        gives=closed(
            {
                "message_id": {"type": "string"},
                "accepted": {"type": "array", "items": {"type": "string"}},
                "refused": {"type": "array"},
                "reply": {"type": "string"},
                "delivery": {"enum": ["accepted", "delivered", "bounced"]},
            }
        ),
        effect=Effect.VERIFIABLE,
        isolation="thread",
        timeout_ms=Millis(20_000),
    ),
    pool="mail",
    rate="mail",
    probeable=True,
    approve=True,
    step_timeout_ms=Millis(120_000),
)
