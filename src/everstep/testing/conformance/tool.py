"""`check_adapter`: what every adapter must do, ours and yours (tools, section 1: K1 to K20).

An adapter may have `cases()`: samples of calls that fit and of calls that must be refused. Without samples only its
words are checked, and the rest is `not_run`, never passed. What a check finds is a value; nothing is raised.
"""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from everstep.domain.record import record
from everstep.ports.adapter import Completed
from everstep.ports.adapter import ToolAdapter as SafeAdapter
from everstep.ports.tool import ToolAdapter
from everstep.testing.conformance import tool_calls, tool_engine, tool_kills, tool_time, tool_words
from everstep.testing.conformance.sample import CANARY, Bench, Sample

Status: TypeAlias = Literal["passed", "failed", "not_run"]
Check: TypeAlias = Callable[[Bench], Awaitable[Sequence[str]]]


@record
class Finding:
    """What one check came to."""

    check: str
    what: str
    status: Status
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = f": {'; '.join(self.problems)}" if self.problems else ""
        return f"{self.check} {self.what} {self.status.replace('_', ' ')}{said}"


WORDS: Final[tuple[tuple[str, str, Check], ...]] = (
    ("K1", "schemas and texts", tool_words.specs),
    ("K6", "classify is total", tool_words.classify),
    ("K9", "health in time", tool_words.health),
    ("K20", "every code has words", tool_words.codes),
)
CALLS: Final[tuple[tuple[str, str, Check], ...]] = (
    ("K2", "validate is pure", tool_calls.validate),
    ("K3", "estimate in time", tool_calls.estimate),
    ("K4", "bad arguments have no effect", tool_calls.refusals),
    ("K5", "output fits its schema", tool_calls.outputs),
    ("K7", "cancelled calls end", tool_calls.cancelled),
    ("K8", "calls whose time is up end", tool_time.timed_out),
    ("K10", "repeats are harmless", tool_calls.repeats),
    ("K11", "secrets are written down nowhere", tool_engine.secrecy),
    ("K12", "killed at every boundary", tool_kills.killed),
    ("K13", "goes on from its checkpoints", tool_time.checkpoints),
    ("K14", "undo restores", tool_calls.undo),
    ("K15", "degrade asks for less", tool_calls.degrade),
    ("K16", "an output over its limit", tool_engine.capped),
    ("K17", "20 calls at once", tool_calls.at_once),
    ("K18", "100 calls leave nothing open", tool_calls.flat),
    ("K19", "what is no JSON is refused", tool_calls.nonsense),
)


async def check_adapter(
    adapter: object,
    samples: Iterable[Sample] | None = None,
    *,
    secrets: Mapping[str, str] | None = None,
    brief: bool = False,
) -> tuple[Finding, ...]:
    """Every check on one adapter, in a folder of its own; `secrets` are those it is configured with.

    `brief`: with a tenth of the calls, where each takes long.
    """
    complete: ToolAdapter = adapter if isinstance(adapter, SafeAdapter) else Completed(adapter)
    said = samples if samples is not None else getattr(adapter, "cases", tuple)()
    with tempfile.TemporaryDirectory(prefix="everstep-check-") as folder:
        known = {"canary": CANARY, **(secrets or {})}
        bench = Bench(adapter=complete, samples=tuple(said), folder=Path(folder), secrets=known, brief=brief)
        return tuple([finding async for finding in _findings(bench)])


async def _findings(bench: Bench) -> AsyncIterator[Finding]:
    for name, what, check in WORDS:
        yield _found(name, what, await check(bench))
    for name, what, check in CALLS:
        if not bench.samples:
            yield Finding(check=name, what=what, status="not_run", problems=("the adapter gives no cases()",))
        else:
            yield _found(name, what, await check(bench))


def _found(name: str, what: str, problems: Sequence[str]) -> Finding:
    return Finding(check=name, what=what, status="failed" if problems else "passed", problems=tuple(problems))


def failed(findings: Iterable[Finding]) -> list[str]:
    """What does not hold, in words."""
    return [str(finding) for finding in findings if finding.status == "failed"]
