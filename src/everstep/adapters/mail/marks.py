"""What is known of a message: the mark before the final dot, the server's yes, the place where sent mail arrives."""

import contextlib
import hashlib
import json
import os
import time
from email.parser import BytesHeaderParser
from pathlib import Path
from typing import Final, Literal, TypeAlias

from everstep.adapters.mail.account import MailSettings, message_id
from everstep.domain.values import JsonObject
from everstep.ports.tool import Call

Seen: TypeAlias = Literal["delivered", "bounced", ""]
KEPT_S: Final = 90 * 86_400
LOOKED_AT_BYTES: Final = 262_144


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


def keep_answer(settings: MailSettings, call: Call, answer: JsonObject) -> None:
    """The server has taken it. Not flushed: what a power cut takes away, the place where mail arrives still knows."""
    place = mark_of(settings, call)
    unfinished = place.with_suffix(".new")
    unfinished.write_text(json.dumps(answer))
    unfinished.replace(place)


def answer_of(settings: MailSettings, call: Call) -> JsonObject | None:
    """What the server said, if it said yes and we heard it."""
    try:
        text = mark_of(settings, call).read_text()
    except FileNotFoundError:
        return None
    found = json.loads(text) if text else None
    return found if isinstance(found, dict) else None


def forget_old(settings: MailSettings, now: float | None = None) -> None:
    """Marks that no task asks for any more."""
    before = (time.time() if now is None else now) - KEPT_S
    for one in settings.marks.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            if one.stat().st_mtime < before:
                one.unlink()


def seen_in(maildir: Path, call: Call, settings: MailSettings) -> Seen:
    """Whether a message of this name arrived there, or a report that it could not be delivered."""
    wanted = message_id(call, settings)
    for part in ("new", "cur"):
        for file in (maildir / part).glob("*"):
            with contextlib.suppress(OSError), file.open("rb") as kept:
                data = kept.read(LOOKED_AT_BYTES)
                if wanted.encode() not in data:
                    continue
                headers = BytesHeaderParser().parsebytes(data)
                if str(headers.get("Message-ID", "")).strip() == wanted:
                    return "delivered"
                if headers.get_content_type() == "multipart/report":
                    return "bounced"
    return ""
