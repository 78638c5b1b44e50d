"""Proof of life: beats from a thread of its own, and only while the loop answers.

A busy loop must not stop the beat, and a dead loop must not be hidden by it: the thread asks the loop for a sign,
and beats as long as the last sign is young enough.
"""

from everstep.domain.errors import StoreError
from everstep.engine.kit import Kit

LOOP_SILENCE_MAX_S = 15.0


class Heartbeat:
    """One worker's beat."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._sign_at = kit.clock.monotonic()
        self.beaten_at = kit.clock.monotonic()

    def start(self) -> None:
        """Beat until stopped."""
        self._kit.pulse.start(self._kit.limits.heartbeat_s, self._beat)

    def stop(self) -> None:
        """No more beats."""
        self._kit.pulse.stop()

    def _sign(self) -> None:
        self._sign_at = self._kit.clock.monotonic()

    def _beat(self) -> None:
        kit = self._kit
        now = kit.clock.monotonic()
        if now - self._sign_at > LOOP_SILENCE_MAX_S:
            kit.sink.note("the event loop does not answer", silent_s=now - self._sign_at)
            return
        kit.loop.call_soon_threadsafe(self._sign)
        try:
            kit.store.beat(kit.worker, kit.clock.now())
            self.beaten_at = now
        except StoreError as error:
            kit.sink.trouble("heartbeat failed", error)
