"""What is set, part by part, as those who use it get it."""

from collections.abc import Mapping
from pathlib import Path

from everstep.domain.ids import Millis
from everstep.domain.limits import TaskLimits
from everstep.domain.rate import Rate
from everstep.domain.record import record
from everstep.domain.states import TaskStatus


@record
class EngineSettings:
    """How one engine works."""

    tasks: int
    heartbeat_ms: Millis
    stale_after_ms: Millis
    janitor_ms: Millis
    max_recoveries: int
    shutdown_grace_ms: Millis
    step_timeout_ms: Millis
    pause_timeout_ms: Millis
    on_pause_timeout: str
    signal_keep_ms: Millis
    listen_dsn: str
    name: str
    kind: str
    """Who carries tasks: `embedded`, or `temporal`."""
    allow_fuse: bool
    """Whether the operator vouches for a file system in a program."""


@record
class TemporalSettings:
    """Where a Temporal server is."""

    address: str
    namespace: str
    queue: str


@record
class ServeSettings:
    """How one engine is served."""

    host: str
    port: int
    ui: bool
    mcp: bool
    tls_cert: Path | None
    tls_key: Path | None
    behind_tls_proxy: bool
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    request_timeout_ms: Millis
    rate: Rate


@record
class LimitSettings:
    """Bounds."""

    keys_ms: Millis
    retention: Mapping[TaskStatus, Millis]
    body_bytes: int
    items: int
    live_tasks: int | None
    inline_bytes: int
    artifact_bytes: int
    of_task: TaskLimits
    """What a task may use, unless its plan says less."""


@record
class RetrySettings:
    """How transient failures are retried, unless tool or plan says otherwise."""

    times: int
    delay_ms: Millis
    max_delay_ms: Millis


@record
class EventSettings:
    """How streams of events behave."""

    heartbeat_ms: Millis
    tick_hz: int
    queue: int
    queue_bytes: int
    sockets_per_token: int


@record
class NetworkSettings:
    """What tools may reach."""

    public_reads: bool
    hosts: tuple[str, ...]
    networks: tuple[str, ...]
