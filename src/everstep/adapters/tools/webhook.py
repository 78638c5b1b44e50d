"""`webhook.send`: signed messages to targets that the configuration names (Standard Webhooks).

The message's id is the idempotency key, so a target that drops repeats makes the call idempotent.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from everstep.adapters.net import Asked, Client, Request
from everstep.adapters.tools.family import closed, spec_of
from everstep.adapters.tools.http_answer import judge
from everstep.domain.canonical import canonical_text
from everstep.domain.failure import EffectState
from everstep.domain.ids import Millis
from everstep.domain.plan import Effect
from everstep.domain.record import record
from everstep.domain.values import JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Misconfigured, ResourceExceeded, ToolError, ToolSpec

DATA_BYTES_MAX: Final = 256 << 10


@record
class WebhookTarget:
    """Where to, signed with which secrets (two while one replaces the other)."""

    url: str
    secrets: tuple[str, ...] = ()
    drops_repeats: bool = False


class WebhookTools(ToolAdapter):
    """The one tool; `secret` gives the value behind a name."""

    def __init__(
        self, client: Client, targets: Mapping[str, WebhookTarget], secret: Callable[[str], str | None]
    ) -> None:
        self._client = client
        self._targets = targets
        self._secret = secret

    def tools(self) -> Sequence[ToolSpec]:
        """None, if the configuration names no target."""
        return (_SPEC,) if self._targets else ()

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """A target that nobody named."""
        target = call.arguments.get("target")
        if isinstance(target, str) and target not in self._targets:
            return [("/target", f"names no target; there are: {', '.join(sorted(self._targets))}")]
        return ()

    def effect_of(self, call: Call) -> Effect | None:
        """Idempotent where the target drops repeats."""
        target = self._targets.get(str(call.arguments.get("target")))
        return Effect.IDEMPOTENT if target is not None and target.drops_repeats else None

    def target(self, call: Call) -> str:
        """Each has a breaker of its own."""
        return str(call.arguments.get("target"))

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Sign and send."""
        target = self._targets[str(call.arguments["target"])]
        body = canonical_text({"type": call.arguments["event"], "data": call.arguments["data"]}).encode()
        if len(body) > DATA_BYTES_MAX:
            raise ResourceExceeded("the message is too large", limit="bytes", used=len(body), max=DATA_BYTES_MAX)
        stamp = str(ctx.now() // 1000)
        signed = f"{call.idempotency_key}.{stamp}.".encode() + body
        marks = [f"v1,{_signature(self._value(name), signed)}" for name in target.secrets]
        headers = [
            ("Content-Type", "application/json"),
            ("webhook-id", call.idempotency_key),
            ("webhook-timestamp", stamp),
            *([("webhook-signature", " ".join(marks))] if marks else []),
        ]
        asked = Asked(use="write", literal=True, configured=True, came_from="the configuration")
        request = Request(method="POST", url=target.url, asked=asked, headers=tuple(headers), body=body, redirects=0)
        try:
            reply = await self._client.send(request)
        except ToolError as error:
            if error.code == "http_redirects":  # whoever has taken a webhook answers 2xx
                error.effect_state = EffectState.NONE
            raise
        judge(reply, None)
        return {"status": reply.status, "id": call.idempotency_key, "elapsed_ms": reply.elapsed_ms}

    def _value(self, name: str) -> str:
        value = self._secret(name.removeprefix("secret:"))
        if value is None:
            raise Misconfigured(f"there is no secret '{name}'", code="secret_missing")
        return value


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode()
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


_SPEC: Final = replace(
    spec_of(
        "webhook.send",
        "Send a webhook",
        "Send a signed message to a target that the configuration names.",
        takes={
            "target": {"type": "string", "x-everstep-kind": "literal", "description": "Its name in the configuration"},
            "event": {"type": "string", "minLength": 1, "description": "What happened: order.created"},
            "data": {"description": "What there is to say about it"},
        },
        needs=("target", "event", "data"),
        gives=closed({"status": {"type": "integer"}, "id": {"type": "string"}, "elapsed_ms": {"type": "integer"}}),
        effect=Effect.ONCE,
        timeout_ms=Millis(35_000),
    ),
    permissions=("net.http",),
    rate="webhook.* 5/1s:5",
)
