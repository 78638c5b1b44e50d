"""A `ctx` for calling a tool without an engine: it answers, and remembers what the tool said."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from everstep.domain.handles import Artifact, media_type_of
from everstep.domain.ids import Instant, StepPath, TaskId
from everstep.domain.plan import Effect, LimitsSpec
from everstep.domain.usage import Measured
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Call, Ctx, Log, Origin
from everstep.wire.values import digest_of

NOW = Instant(1_800_000_000_000)


@dataclass
class Lines:
    """A log that remembers."""

    said: list[str] = field(default_factory=list)

    def info(self, text: str, **_fields: JsonValue) -> None:
        """Kept."""
        self.said.append(text)

    def warning(self, text: str, **_fields: JsonValue) -> None:
        """Kept."""
        self.said.append(text)


@dataclass
class Context:
    """What a call sees."""

    task_id: TaskId = TaskId("t_1")
    step_id: StepPath = StepPath("step")
    attempt: int = 1
    owner: str = "local"
    workdir: Path = Path()
    idempotency_key: str = "k" * 64
    answer: JsonValue = None
    deadline: datetime = field(default_factory=lambda: datetime.now(UTC) + timedelta(minutes=1))
    cancelled: bool = False
    log: Log = field(default_factory=Lines)
    origin: Origin = field(default_factory=Origin)
    bounds: LimitsSpec | None = None
    left: LimitsSpec = LimitsSpec()
    cursor: JsonValue = None
    fractions: list[float] = field(default_factory=list)
    streamed: list[str] = field(default_factory=list)
    used: list[object] = field(default_factory=list)
    artifacts: list[tuple[str, bytes]] = field(default_factory=list)

    def now(self) -> Instant:
        """A fixed moment."""
        return NOW

    def remaining(self) -> float:
        """A minute."""
        return 60.0

    async def wait_cancelled(self) -> None:
        """Nobody cancels."""
        await asyncio.Event().wait()

    async def checkpoint(self, cursor: JsonValue) -> None:
        """Kept: where another call would go on."""
        self.cursor = cursor

    def artifact(self, name: str, data_or_path: bytes | str | Path, media_type: str | None = None) -> Artifact:
        """Kept."""
        raw = data_or_path if isinstance(data_or_path, bytes) else (self.workdir / data_or_path).read_bytes()
        self.artifacts.append((name, raw))
        kind = media_type or media_type_of(name)
        return Artifact(name=name, digest=digest_of(raw), media_type=kind, bytes=len(raw))

    async def kept(self, handle: JsonObject) -> bytes:
        """What was left here."""
        return next(raw for _, raw in self.artifacts if digest_of(raw) == handle["digest"])

    def nearing(self, limit: str, used: float, most: float) -> None:
        """Kept."""
        self.used.append((limit, used, most))

    def progress(self, fraction: float, text: str | None = None) -> None:  # noqa: ARG002
        """Kept."""
        self.fractions.append(fraction)

    def stream(self, text: str) -> None:
        """Kept."""
        self.streamed.append(text)

    def usage(
        self,
        cost: float | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        **counts: float | None,
    ) -> None:
        """Kept."""
        self.used.append((cost, tokens_in, tokens_out, counts))

    def measured(self, used: Measured) -> None:
        """Kept."""
        self.used.append(used)

    def outlives(self) -> Callable[[], None]:
        """Nobody waits for it."""
        return lambda: None


def context(**said: object) -> Ctx:
    """A context that answers as said."""
    return Context(**said)  # type: ignore[arg-type]  # names and types are the fields above


def call_of(tool: str, arguments: JsonObject, *, key: str = "k" * 64, effect: Effect = Effect.PURE) -> Call:
    """A call of `tool`."""
    return Call(tool=tool, arguments=arguments, effect=effect, idempotency_key=key)
