"""Signals: the desk's operation that lets the outside world end a wait."""

from everstep.domain.errors import LimitExceeded
from everstep.domain.events import Who
from everstep.domain.signal import DATA_BYTES_MAX, Signal, check_name
from everstep.domain.values import JsonValue
from everstep.engine.runtime import whole
from everstep.engine.signal import Sent, send
from everstep.facade.steering import Steering
from everstep.wire.signal import heard
from everstep.wire.values import canonical


class Signalling(Steering):
    """Send a signal: durable, then heard by every step that waits for it."""

    @whole
    async def signal(
        self, event: str, key: str | None, data: JsonValue, who: Who, *, id: str | None = None
    ) -> tuple[str, Sent]:
        """Its id, and what came of it; the same id again does nothing twice."""
        self._runtime.require_ready()
        for what, name in (("event", event), ("key", key), ("id", id)):
            if name is not None:
                check_name(what, name)
        if len(canonical(data)) > DATA_BYTES_MAX:
            raise LimitExceeded(f"'data' has more than {DATA_BYTES_MAX} bytes", what_to_do="send a reference instead")
        name = id or self._kit.entropy.new_id("s")
        signal = Signal(
            id=name,
            owner=who.owner,
            event=event,
            key=key,
            at=self.now,
            actor=who.actor,
            output=heard(event, key, data, self.now),
        )
        sent = await send(signal, self._kit)
        for task in sent.tasks:
            self._runtime.loop.nudge(task)
        return name, sent
