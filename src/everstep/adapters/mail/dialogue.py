"""The dialogue with the server, step by step, so that it is known how far it came."""

import contextlib
import re
import smtplib
import socket
import ssl
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Final

from everstep.adapters.mail.account import MailSettings, recipients, told
from everstep.adapters.mail.marks import keep_answer, mark, mark_of
from everstep.domain.values import JsonObject
from everstep.ports.tool import Call, Denied, Impossible, Misconfigured, ToolError, Transient, Uncertain

TIMEOUT_S: Final = 15.0
HERE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PERMANENT: Final = frozenset({500, 501, 502, 503, 504, 550, 551, 553})


def connected(settings: MailSettings) -> smtplib.SMTP:
    """Greeted, encrypted and signed in. Only a server of this machine may do without encryption."""
    trust = ssl.create_default_context()
    kind = smtplib.SMTP_SSL if settings.encrypted else smtplib.SMTP
    more: dict[str, Any] = {"context": trust} if settings.encrypted else {}
    server = kind(settings.host, settings.port, timeout=TIMEOUT_S, **more)
    with contextlib.ExitStack() as stack:
        stack.callback(server.close)
        server.ehlo_or_helo_if_needed()
        if not settings.encrypted and server.has_extn("starttls"):
            server.starttls(context=trust)
            server.ehlo()
        elif not settings.encrypted and settings.host not in HERE:
            raise Denied(f"{settings.host} offers no encryption", code="mail_policy")
        if settings.user:
            server.login(settings.user, settings.password)
        stack.pop_all()
    return server


def sent(message: EmailMessage, call: Call, settings: MailSettings) -> JsonObject:
    """Send it; raises ToolErrors that say whether it may have arrived."""
    dotted = False
    try:
        with contextlib.closing(connected(settings)) as server:
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
            told_all = _told(call, settings, answers, f"{reply[0]} {_words(reply[1])}")
            keep_answer(settings, call, told_all)
            with contextlib.suppress(smtplib.SMTPException, OSError):
                server.quit()
    except smtplib.SMTPAuthenticationError as error:
        raise Denied(f"the server refuses the account: {error.smtp_code}", code="mail_auth") from error
    except smtplib.SMTPResponseException as error:
        raise judged(error.smtp_code, bytes(str(error.smtp_error), "utf-8"), "the greeting") from error
    except (OSError, smtplib.SMTPException) as error:
        raise _broken_off(error, settings, dotted=dotted) from error
    return told_all


def _broken_off(error: Exception, settings: MailSettings, *, dotted: bool) -> ToolError:
    what = f"the connection to {settings.host}:{settings.port}: {error}"
    if dotted:
        return Uncertain(f"{what}; the message may have been sent", code="mail_lost")
    if isinstance(error, ssl.SSLCertVerificationError):
        return Misconfigured(f"{what}; its certificate is not believed", code="net_tls")
    if isinstance(error, socket.gaierror):
        return Misconfigured(f"there is no host '{settings.host}'", code="net_host")
    return Transient(what, code="net_connect")


def _told(call: Call, settings: MailSettings, answers: dict[str, tuple[int, bytes]], reply: str) -> JsonObject:
    accepted = [address for address, (code, _) in answers.items() if code in {250, 251}]
    refused = {address: f"{code} {_words(said)}" for address, (code, said) in answers.items() if code not in {250, 251}}
    known = told(call, settings, accepted=accepted, reply=reply)
    return {**known, "refused": [{"address": address, "why": why} for address, why in refused.items()]}


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
