"""Proof of life: beats from a thread of its own, and only while the loop answers.

A busy loop must not stop the beat, and a dead loop must not be hidden by it: the thread asks the loop for a sign,
and beats as long as the last sign is young enough. Where others take over what the dead hold, a worker that has not
beaten for two thirds of its lease takes itself for dead: it begins no call any more, before anybody else may.
"""

from collections.abc import Callable

from everstep.domain.errors import LeaseLost, StoreError
from everstep.engine.kit import Kit

LOOP_SILENCE_MAX_S = 15.0
FENCE = 2 / 3
"""After this part of the lease."""


class Heartbeat:
    """One worker's beat. `lost`: what to do when its lease is, or may be, somebody else's; called on the loop."""

    def __init__(self, kit: Kit, lost: Callable[[], None] | None = None) -> None:
        self._kit = kit
        self._lost = lost
        self._fence_s = FENCE * kit.limits.stale_after_ms / 1000
        self._sign_at = kit.clock.monotonic()
        self.beaten_at = kit.clock.monotonic()
        self._renewed(self.beaten_at)

    def start(self) -> None:
        """Beat until stopped."""
        self._kit.pulse.start(min(self._kit.limits.heartbeat_s, self._fence_s / 2), self._beat)

    def stop(self) -> None:
        """No more beats."""
        self._kit.pulse.stop()

    def _sign(self) -> None:
        self._sign_at = self._kit.clock.monotonic()

    def _renewed(self, at: float) -> None:
        self.beaten_at = at
        if self._lost is not None:
            self._kit.lease_until = at + self._fence_s

    def _beat(self) -> None:
        kit = self._kit
        now = kit.clock.monotonic()
        if now - self._sign_at > LOOP_SILENCE_MAX_S:
            kit.sink.note("the event loop does not answer", silent_s=now - self._sign_at)
            return
        kit.loop.call_soon_threadsafe(self._sign)
        try:
            if not kit.lapsed:
                kit.store.beat(kit.worker, kit.clock.now())
                self._renewed(now)
        except LeaseLost as error:
            kit.sink.trouble("the lease is lost", error)
            kit.lease_until = None if self._lost is None else now - 1
        except StoreError as error:
            kit.sink.trouble("heartbeat failed", error)
        if self._lost is not None and kit.lapsed:
            lost, self._lost = self._lost, None
            kit.loop.call_soon_threadsafe(lost)
