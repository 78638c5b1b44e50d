"""The driver on Temporal: workers of two queues in this process; hints are signals that start what is not there yet."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from everstep.adapters.temporal.activities import Activities, beat_s
from everstep.adapters.temporal.workflow import CALLS, NAME, Begin, CarriedTask
from everstep.domain.errors import Unavailable
from everstep.domain.ids import TaskId
from everstep.domain.record import record
from everstep.ports.driver import Carried

TURNS_MAX = 200
"""Turns at the same time; each is a few statements."""
AGAIN_S = 1.0
"""After so long a worker that failed is replaced."""


@record
class Place:
    """Which server, and how much of it."""

    address: str
    namespace: str
    queue: str
    calls: int
    """At the same time in this process."""
    silence_s: float
    """After so long without a beat a call is given up."""


class TemporalDriver:
    """Carries tasks by one workflow each."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._client: Client | None = None
        self._workers: list[Worker] = []
        self._working: list[asyncio.Task[None]] = []

    async def open(self, carried: Carried) -> None:
        """Connect, and take turns and calls."""
        place = self._place
        try:
            client = await Client.connect(place.address, namespace=place.namespace)
        except (RPCError, RuntimeError) as error:
            raise _unavailable(place, error) from error
        done = Activities(carried, place.silence_s)
        beats = timedelta(seconds=beat_s(place.silence_s))
        turns = partial(
            Worker,
            client,
            task_queue=place.queue,
            workflows=[CarriedTask],
            activities=done.turns,
            workflow_runner=UnsandboxedWorkflowRunner(),  # the one workflow is ours, and its histories are replayed
            max_concurrent_activities=TURNS_MAX,
            max_heartbeat_throttle_interval=beats,
            default_heartbeat_throttle_interval=beats,
        )
        calls = partial(
            Worker,
            client,
            task_queue=place.queue + CALLS,
            activities=[done.call],
            max_concurrent_activities=place.calls,
            max_heartbeat_throttle_interval=beats,
            default_heartbeat_throttle_interval=beats,
        )
        self._client = client
        self._working = [asyncio.create_task(self._work(make, carried)) for make in (turns, calls)]

    async def _work(self, make: Callable[[], Worker], carried: Carried) -> None:
        """Until it is shut down. One that fails takes nothing more: another one takes its place."""
        while True:
            worker = make()
            self._workers.append(worker)
            try:
                return await worker.run()
            except Exception as error:  # noqa: BLE001 -- whatever the SDK has met
                self._workers.remove(worker)
                carried.trouble("a worker of Temporal failed", error)
                await asyncio.sleep(AGAIN_S)

    async def tell(self, task: TaskId) -> None:
        """Signal its workflow, which is started if there is none."""
        place = self._place
        if self._client is None:
            raise Unavailable(f"not connected to Temporal at {place.address}")
        try:
            await self._client.start_workflow(
                NAME,
                Begin(task=task, silence_s=place.silence_s),
                id=task,
                task_queue=place.queue,
                start_signal="told",
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                rpc_timeout=timedelta(seconds=10),
            )
        except RPCError as error:
            raise _unavailable(place, error) from error

    async def close(self, grace_s: float) -> None:
        """Calls get their grace; those that do not end are given up by whoever looks next."""
        ends = [asyncio.create_task(worker.shutdown()) for worker in self._workers]
        if ends:
            await asyncio.wait(ends, timeout=grace_s)
        for working in (*ends, *self._working):
            working.cancel()
            with suppress(asyncio.CancelledError):
                await working


def _unavailable(place: Place, error: Exception) -> Unavailable:
    return Unavailable(
        f"Temporal at {place.address} does not answer: {error}",
        what_to_do="start it, or correct `temporal.address` and `temporal.namespace`",
    )
