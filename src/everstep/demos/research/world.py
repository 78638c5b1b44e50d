"""A search engine, the pages it finds, and a mail server.

Some of it behaves as the world does: one page hangs at first, one hangs up, one wants to know who is asking.
"""

import asyncio
import html
import mailbox
from collections.abc import Callable
from email import message_from_bytes
from pathlib import Path
from typing import Final

from everstep.demos.folder import WORLD, happened
from everstep.demos.rig import World
from everstep.domain.values import JsonValue
from everstep.testing.rig import Asked, Behaviour, Writer, answer, reset, silence

LIBRARY: Final = Path(__file__).parent / "library"
MAILDIR: Final = "sent"
HANGS, DEAD, CLOSED = "pumped-hydro", "heat-as-storage", "second-life"
READ_S: Final = 0.8
ACCEPT_S: Final = 0.5


async def build(world: World) -> None:
    """The site first: the search engine tells its address."""
    site = await world.site("site")
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(LIBRARY.glob("*.txt"))}
    hits: list[JsonValue] = [
        {"url": site.url(f"/pages/{name}"), "title": _title(text), "content": ""} for name, text in texts.items()
    ]
    seen = _seen(world)
    site.on("/search", _after(READ_S * world.pace, seen("hits"), answer(200, {"results": hits})))
    for name, text in texts.items():
        page: Behaviour = _after(READ_S * world.pace, seen("pages"), _page(text))
        odd: dict[str, list[Behaviour]] = {HANGS: [silence, page], DEAD: [reset], CLOSED: [answer(401)]}
        site.on(f"/pages/{name}", odd.get(name, [page]))
    sink = MailSink(mailbox.Maildir(world.folder.path / MAILDIR), seen("send"))
    server = await asyncio.start_server(sink.serve, "127.0.0.1", world.parts.get("mail", 0))
    world.parts["mail"] = server.sockets[0].getsockname()[1]


def _seen(world: World) -> Callable[[str], Callable[[], None]]:
    return lambda step: lambda: happened(world.folder.path / WORLD, step=step)


def _after(wait_s: float, seen: Callable[[], None], then: Behaviour) -> Behaviour:
    async def behave(asked: Asked, writer: Writer) -> bool:
        seen()
        await asyncio.sleep(wait_s)
        return await then(asked, writer)

    return behave


def _title(text: str) -> str:
    return text.partition("\n")[0]


def _page(text: str) -> Behaviour:
    body = "".join(f"<p>{html.escape(part)}</p>" for part in text.partition("\n")[2].split("\n\n"))
    page = f"<!doctype html><title>{html.escape(_title(text))}</title><h1>{html.escape(_title(text))}</h1>{body}"
    return answer(200, page.encode(), Content_Type="text/html; charset=utf-8")


class MailSink:
    """An SMTP server for one kind of guest; what it accepts lies in a Maildir."""

    def __init__(self, box: "mailbox.Maildir", seen: Callable[[], None]) -> None:
        self._box = box
        self._seen = seen

    async def serve(self, reader: asyncio.StreamReader, writer: Writer) -> None:
        """One guest."""
        writer.write(b"220 demo\r\n")
        while line := await reader.readline():
            verb = line[:4].upper()
            if verb == b"DATA":
                writer.write(b"354 go on\r\n")
                self._keep(await reader.readuntil(b"\r\n.\r\n"))
                await asyncio.sleep(ACCEPT_S)  # it has it, and the guest does not know yet
            writer.write(b"221 bye\r\n" if verb == b"QUIT" else b"250 demo\r\n")
            await writer.drain()
            if verb == b"QUIT":
                break
        writer.close()

    def _keep(self, raw: bytes) -> None:
        message = message_from_bytes(raw.removesuffix(b".\r\n").replace(b"\r\n..", b"\r\n."))
        self._box.add(mailbox.MaildirMessage(message))
        self._seen()
