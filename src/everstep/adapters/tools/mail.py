"""`mail.send`: one message over SMTP, named by its idempotency key, so that a lost answer can be looked up.

Before the final dot a mark is written: no mark, nothing was sent; the server's yes is kept in it; else the place where
sent mail arrives (`mail.lookup`) says. Sender and server come from the configuration, no header from a plan.
"""

import asyncio
import smtplib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from everstep.adapters.mail.account import (
    MailSettings,
    composed,
    is_address,
    is_within,
    listed,
    message_id,
    recipients,
    told,
)
from everstep.adapters.mail.attached import attached, path_problems
from everstep.adapters.mail.content import denied, doubtful
from everstep.adapters.mail.dialogue import connected, sent
from everstep.adapters.mail.marks import Seen, answer_of, forget_old, mark_of, seen_in
from everstep.adapters.net import Asked, Client, Request
from everstep.adapters.threads import Threads
from everstep.adapters.tools.mail_specs import SEND
from everstep.domain.redact import Redactor
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Denied, Health, Probed, ToolError, ToolSpec, Uncertain

AGAIN_S: Final = 0.5
ARRIVES_S: Final = 5.0
"""A message that was taken may take so long to arrive: until then not having seen it means nothing."""


class MailTools(ToolAdapter):
    """The one tool; it is there only if a server is configured."""

    def __init__(
        self, settings: MailSettings | None, threads: Threads, redactor: Redactor, client: Client | None = None
    ) -> None:
        self._settings = settings
        self._threads = threads
        self._redactor = redactor
        self._client = client
        if settings is not None:
            forget_old(settings)

    def tools(self) -> Sequence[ToolSpec]:
        """None without a server."""
        return () if self._settings is None else (SEND,)

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """Addresses and headers that are not sent."""
        arguments, settings = call.arguments, self._account
        problems = []
        for name in ("to", "cc", "bcc"):
            for address in listed(arguments.get(name)):
                if not is_address(address):
                    problems.append((f"/{name}", f"{address!r} is not one plain address"))
                elif is_within(address, settings.blocked):
                    problems.append((f"/{name}", f"mail to {address.rpartition('@')[2]} is blocked"))
        everybody = recipients(arguments)
        if len(everybody) > settings.recipients_max:
            problems.append(("/to", f"{len(everybody)} recipients, and {settings.recipients_max} are allowed"))
        problems += path_problems(arguments.get("attachments"))
        if any(ord(one) < 32 or ord(one) == 127 for one in str(arguments.get("subject", ""))):
            problems.append(("/subject", "holds a line break or another control character"))
        return problems

    def target(self, call: Call) -> str:  # noqa: ARG002 -- there is one server
        """The server."""
        return f"{self._account.host}:{self._account.port}"

    def counts(self, call: Call) -> Sequence[tuple[str, str]]:
        """Every recipient has a rate of its own beside the account's."""
        return [("mail.to", address.lower()) for address in recipients(call.arguments)]

    def scruple(self, call: Call) -> str | None:
        """Nothing to ask where all recipients are of our own domains and the contents raise no doubt."""
        doubts = doubtful(_text_of(call.arguments))
        if doubts:
            return f"the message holds {' and '.join(doubts)}"
        inside = all(is_within(address, self._account.internal) for address in recipients(call.arguments))
        return "" if inside else None

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Send it in a thread, once; nothing is sent that holds a secret or a key."""
        settings = self._account
        known = answer_of(settings, call)
        if known is None:
            files = await attached(call.arguments.get("attachments"), ctx, self._threads)
            self._refuse("\n".join((_text_of(call.arguments), *(one.decode("latin-1") for one in files.values()))))
            message = composed(call, settings, files)
            known = await self._threads.call(lambda: sent(message, call, settings), ctx.outlives)
        return known if settings.confirm == "accepted" else await self._confirmed(call, known, ctx)

    async def probe(self, call: Call) -> Probed:
        """No mark: the final dot was not sent. The server's yes in it: done. Else look where sent mail arrives."""
        if self._settings is None:
            return Probed(result="unknown")
        settings = self._settings
        if not mark_of(settings, call).exists():
            return Probed(result="not_done")
        known = answer_of(settings, call)
        if known is not None:
            return Probed(result="done", output=known)
        if settings.lookup is None:
            return Probed(result="unknown")
        seen = await self._seen(call, ARRIVES_S)
        if not seen:
            return Probed(result="not_done")
        found = told(call, settings, accepted=recipients(call.arguments), reply="found")
        return Probed(result="done", output={**found, "delivery": seen})

    async def health(self) -> Health:
        """Greets and signs in; sends nothing."""
        if self._settings is None:
            return Health()
        settings = self._settings
        try:
            await self._threads.call(lambda: connected(settings).close())
        except (ToolError, OSError, smtplib.SMTPException) as error:
            return Health(status="unhealthy", detail=str(error))
        return Health(status="healthy")

    @property
    def _account(self) -> MailSettings:
        assert self._settings is not None
        return self._settings

    def _refuse(self, text: str) -> None:
        what = denied(text)
        if what is None and (self._redactor.text(text) != text or "[secret:" in text):
            what = "a secret"
        if what is not None:
            raise Denied(f"the message holds {what}", code="mail_content")

    async def _confirmed(self, call: Call, known: JsonObject, ctx: Ctx) -> JsonObject:
        """Wait until it has arrived, as long as the attempt may take. It is never sent again for that."""
        seen: Seen = ""
        why = "it has not arrived yet"
        try:
            seen = await self._seen(call, max(ctx.remaining() - 1.0, 0.0))
        except (ToolError, OSError) as error:
            why = f"nobody can say whether it has arrived: {error}"
        if not seen:
            raise Unconfirmed(f"{message_id(call, self._account)} was taken by the server; {why}")
        return {**known, "delivery": seen}

    async def _seen(self, call: Call, patience_s: float) -> Seen:
        """Look until it is there, for so long; raises what kept from looking to the end."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience_s
        while True:
            try:
                seen = await self._look(call)
            except (ToolError, OSError):
                if loop.time() >= end:
                    raise
                seen = ""
            if seen or loop.time() >= end:
                return seen
            await asyncio.sleep(AGAIN_S)

    async def _look(self, call: Call) -> Seen:
        settings, place = self._account, self._account.lookup
        if isinstance(place, Path):
            return await self._threads.call(lambda: seen_in(place, call, settings))
        assert place is not None
        assert self._client is not None
        asked = Asked(literal=True, configured=True, came_from="the configuration")
        url = place.replace("{message_id}", message_id(call, settings).strip("<>").replace("@", "%40"))
        reply = await self._client.send(Request(method="GET", url=url, asked=asked, total_s=ARRIVES_S))
        if reply.status not in {200, 404}:
            raise Uncertain(f"the place where mail arrives answered {reply.status}", code="mail_lost")
        return "delivered" if reply.status == 200 else ""


class Unconfirmed(ToolError):
    """The server has it, and that is all that is known."""

    category = "logic"

    def __init__(self, message: str) -> None:
        super().__init__(message, code="mail_unconfirmed", effect_state="made")


def _text_of(arguments: JsonObject) -> str:
    return "\n".join(str(arguments.get(name, "")) for name in ("subject", "text", "html"))
