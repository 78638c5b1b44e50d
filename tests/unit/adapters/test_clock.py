"""The system's clock and pulse."""

import asyncio
import threading
import time

import pytest

from everstep.adapters.clock import SystemClock, ThreadPulse
from everstep.domain.ids import Instant
from everstep.ports.clock import Clock, Pulse


class Set(SystemClock):
    """A wall clock that somebody sets."""

    def __init__(self, *times: int) -> None:
        self.times = list(times)

    def now(self) -> Instant:
        return Instant(self.times.pop(0) if len(self.times) > 1 else self.times[0])


def test_they_answer_their_ports() -> None:
    clock: Clock = SystemClock()
    pulse: Pulse = ThreadPulse()
    assert abs(clock.now() - time.time() * 1000) < 5_000
    assert clock.monotonic() <= clock.monotonic()
    pulse.stop()


async def test_a_time_that_has_passed_wakes_at_once() -> None:
    clock = SystemClock()
    await clock.sleep_until(clock.now())
    await clock.sleep_until(Instant(0))


async def test_waiting_ends_when_the_wall_clock_says_so() -> None:
    clock = SystemClock()
    due = Instant(clock.now() + 5)
    await clock.sleep_until(due)
    assert clock.now() >= due


async def test_long_waits_look_at_the_clock_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    await Set(0, 1_000, 3_600_000).sleep_until(Instant(3_600_000))
    assert waits == [15.0, 15.0], "an hour that was skipped is not waited for"


async def test_a_call_comes_when_its_time_is_up_unless_cancelled() -> None:
    called = asyncio.Event()
    SystemClock().call_later(0.0, lambda: pytest.fail("it was cancelled")).cancel()
    SystemClock().call_later(0.001, called.set)
    await called.wait()


def test_the_pulse_beats_from_its_own_thread_until_stopped() -> None:
    pulse = ThreadPulse()
    beats = threading.Semaphore(0)
    names: set[str] = set()

    def beat() -> None:
        names.add(threading.current_thread().name)
        beats.release()

    pulse.start(0.001, beat)
    for _ in range(3):
        assert beats.acquire(timeout=10)
    pulse.stop()
    assert names == {"everstep-pulse"}
    while beats.acquire(blocking=False):
        pass
    assert not beats.acquire(timeout=0.01)


def test_a_pulse_can_start_again_and_stop_itself() -> None:
    pulse = ThreadPulse()
    stopped = threading.Event()

    def beat() -> None:
        pulse.stop()
        stopped.set()

    for _ in range(2):
        stopped.clear()
        pulse.start(0.001, beat)
        assert stopped.wait(10)


def test_stopping_does_not_wait_for_the_next_beat() -> None:
    pulse = ThreadPulse()
    pulse.start(3_600, lambda: None)
    began = time.monotonic()
    pulse.stop()
    assert time.monotonic() - began < 10
