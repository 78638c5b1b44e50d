"""A real SMTP server in this process: it writes real messages, and answers as it is told."""

import email
import mailbox
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import policy
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller

from everstep.adapters.mail.account import MailSettings
from everstep.adapters.threads import Threads
from everstep.adapters.tools.mail import MailTools
from everstep.domain.redact import Redactor
from everstep.domain.values import JsonObject, JsonValue

PLAIN: JsonObject = {"to": "ana@example.test", "subject": "Grüße", "text": "Hello\n.\nfrom a dot\n"}


class Post:
    """A server that keeps what it takes in a Maildir."""

    def __init__(self, folder: Path) -> None:
        self.box = mailbox.Maildir(folder, create=True)
        self.folder = folder
        self.port = 0
        self.answers: list[str] = []
        self.after: Any = None
        self.envelopes: list[list[str]] = []
        self.asked = 0
        """How often somebody came with a recipient."""

    async def handle_RCPT(self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any) -> str:
        self.asked += 1
        if address.startswith("nobody"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        answer = self.answers.pop(0) if self.answers else "250 taken"
        if answer.startswith("250"):
            self.box.add(envelope.content)
            self.envelopes.append(list(envelope.rcpt_tos))
        if self.after is not None:
            self.after()
        return answer

    def messages(self) -> list[email.message.EmailMessage]:
        return [
            email.message_from_bytes(file.read_bytes(), policy=policy.default)
            for part in ("new", "cur")
            for file in sorted((self.folder / part).iterdir())
        ]


class _AnyPort(Controller):
    """On a port that the system chooses."""

    def _trigger_server(self) -> None:
        self.port = self.server.sockets[0].getsockname()[1]  # type: ignore[union-attr]  # it is a server of asyncio
        super()._trigger_server()  # type: ignore[no-untyped-call]  # aiosmtpd has no types here


@contextmanager
def at_work(folder: Path, host: str = "127.0.0.1", **said: ssl.SSLContext | bool) -> Iterator[Post]:
    """Started and stopped; `said` are options of the server."""
    post = Post(folder)
    controller = _AnyPort(post, hostname=host, port=0, **said)  # type: ignore[arg-type]  # each is an option
    controller.start()
    post.port = controller.port
    yield post
    controller.stop()


def tools_of(post: Post, tmp_path: Path, redactor: Redactor | None = None, **said: Any) -> MailTools:
    account = {
        "host": "127.0.0.1",
        "port": post.port,
        "encrypted": False,
        "sender": "me@example.test",
        "blocked": ("evil.test",),
        "lookup": post.folder,
        "marks": tmp_path / "marks",
    }
    return MailTools(MailSettings(**{**account, **said}), Threads(), redactor or Redactor())


def config_of(post: Post) -> dict[str, JsonValue]:
    return {
        "mail.server": f"smtp://127.0.0.1:{post.port}",
        "mail.sender": "me@example.test",
        "mail.lookup": str(post.folder),
        "policy.approve": {"mail.send": False},
    }
