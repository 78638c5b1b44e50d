"""What `mail.send` takes and gives."""

from dataclasses import replace
from typing import Final

from everstep.adapters.tools.family import ARTIFACT, closed, spec_of
from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject

TEXT_CHARS_MAX: Final = 1_000_000

_TO: Final[JsonObject] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
    "x-everstep-kind": "checked",
}
SEND: Final = replace(
    spec_of(
        "mail.send",
        "Send a mail",
        "Send one message from the account of the configuration. It asks first, unless all recipients are internal.",
        takes={
            "to": {**_TO, "description": "An address, or several"},
            "cc": {**_TO, "description": "Who sees it too"},
            "bcc": {**_TO, "description": "Who sees it unseen"},
            "subject": {"type": "string", "maxLength": 900, "description": "One line"},
            "text": {"type": "string", "maxLength": TEXT_CHARS_MAX, "description": "The message"},
            "html": {"type": "string", "maxLength": TEXT_CHARS_MAX, "description": "The same, as a page"},
            "attachments": {
                "type": "array",
                "items": {"anyOf": [{"type": "string"}, ARTIFACT]},
                "maxItems": 20,
                "x-everstep-kind": "checked",
                "description": "Files of the workspace, and artifacts of earlier steps; 10 MiB together",
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
    permissions=("mail.send",),
    rate="mail",
    probeable=True,
    approve=True,
    step_timeout_ms=Millis(120_000),
)
