"""Threads: results and exceptions come back, context goes along, given-up calls hurt nobody."""

import asyncio
import contextvars
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

import pytest

from everstep.adapters.threads import Threads

PLACE: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="nowhere")


async def test_a_call_returns_from_another_thread() -> None:
    threads = Threads()
    assert await threads.call(threading.get_ident) != threading.get_ident()
    threads.close()


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()])
async def test_what_is_raised_arrives(error: BaseException) -> None:
    def fail() -> None:
        raise error

    threads = Threads()
    with pytest.raises(type(error)):
        await threads.call(fail)
    assert await threads.call(lambda: 3) == 3, "the thread goes on"
    threads.close()


async def test_stop_iteration_does_not_hang() -> None:
    threads = Threads()
    with pytest.raises(RuntimeError, match="StopIteration"):
        await threads.call(lambda: next(iter(())))
    threads.close()


async def test_context_variables_go_along() -> None:
    threads = Threads()
    PLACE.set("here")
    assert await threads.call(PLACE.get) == "here"
    threads.close()


async def test_threads_are_used_again_and_never_more_than_the_limit() -> None:
    threads = Threads(limit=2)
    gate = threading.Barrier(3)
    first = [asyncio.create_task(threads.call(lambda: (gate.wait(), threading.get_ident())[1])) for _ in range(2)]
    third = asyncio.create_task(threads.call(threading.get_ident))
    await asyncio.get_running_loop().run_in_executor(None, gate.wait)
    used = set(await asyncio.gather(*first))
    assert len(used) == 2
    assert await third in used
    threads.close()


async def test_a_call_given_up_before_it_began_is_never_made() -> None:
    threads = Threads(limit=1)
    gate = threading.Event()
    made: list[int] = []
    busy = asyncio.create_task(threads.call(gate.wait))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(threads.call(lambda: made.append(1)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.set()
    await busy
    assert await threads.call(lambda: 5) == 5
    assert made == []
    threads.close()


async def test_a_call_given_up_while_it_works_ends_by_itself() -> None:
    threads = Threads(limit=1)
    gate, began = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        gate.wait()

    call = asyncio.create_task(threads.call(work))
    await asyncio.get_running_loop().run_in_executor(None, began.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    gate.set()
    assert await threads.call(lambda: 5) == 5, "its slot is free again"
    threads.close()


def test_a_hung_call_keeps_no_process_from_ending() -> None:
    program = """
        import asyncio, threading
        from everstep.adapters.threads import Threads
        async def main():
            began = threading.Event()
            def hang():
                began.set()
                threading.Event().wait()
            call = asyncio.create_task(Threads().call(hang))
            while not began.is_set():
                await asyncio.sleep(0)
            call.cancel()
        asyncio.run(main())
        print("ended")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "ended\n"


def test_an_answer_for_a_loop_that_is_gone_is_dropped() -> None:
    threads = Threads()
    gate, done = threading.Event(), threading.Event()

    def work() -> None:
        gate.wait()
        done.set()

    async def leave() -> None:
        task = asyncio.create_task(threads.call(work))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(leave())
    gate.set()
    assert done.wait(10)
    assert asyncio.run(threads.call(lambda: 7)) == 7
    threads.close()


async def test_who_gives_up_a_call_in_the_moment_it_ends_keeps_nothing_for_it() -> None:
    """Its end is on the way already: nobody would say so a second time."""
    threads, outliving, done = Threads(), [], threading.Event()

    def outlives() -> Callable[[], None]:
        outliving.append(call)
        return lambda: None

    call = asyncio.ensure_future(threads.call(done.wait, outlives))
    await asyncio.sleep(0)
    done.set()
    assert threads._idle.acquire(timeout=60), "it has ended, and this loop has not heard of it yet"
    threads._idle.release()
    asyncio.get_running_loop().call_soon(call.cancel)
    await asyncio.wait((call,))
    assert outliving == []
    threads.close()
