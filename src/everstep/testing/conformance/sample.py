"""What the tool suite works with: samples of calls, and the bench they are tried on."""

import hashlib
import itertools
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from everstep.domain.record import record
from everstep.domain.values import JsonObject
from everstep.ports.tool import Call, Ctx, ToolAdapter, ToolSpec
from everstep.testing.context import context
from everstep.wire.values import Codec

CANARY: Final = "canary-7f3c9e51d2"


def below(but: Collection[int] = frozenset()) -> set[int]:
    """Processes below this one, without these and what they start."""
    found: set[int] = set()
    pending = [psutil.Process()]
    for parent in pending:
        with suppress(psutil.NoSuchProcess):
            ours = [child for child in parent.children() if child.pid not in but]
            found.update(child.pid for child in ours)
            pending += ours
    return found


@record
class Sample:
    """Arguments for one tool; `fits`: a call that works, else one that must be refused before it does anything."""

    tool: str
    arguments: JsonObject
    fits: bool = True


@dataclass(kw_only=True)
class Bench:
    """One adapter under test, its samples, and a folder to work in."""

    adapter: ToolAdapter
    samples: tuple[Sample, ...]
    folder: Path
    secrets: Mapping[str, str] = field(default_factory=lambda: {"canary": CANARY})
    """What it may use and nobody may see."""
    grace_s: float = 5.0
    brief: bool = False
    """Whether a few calls must do where it should be many."""
    codec: Codec = field(default_factory=Codec)
    strangers: frozenset[int] = field(default_factory=lambda: frozenset(below()))
    """Processes that were there before the adapter was asked anything: what they start is no business of ours."""
    _keys: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def specs(self) -> dict[str, ToolSpec]:
        """By name."""
        return {spec.name: spec for spec in self.adapter.tools()}

    def fitting(self) -> list[Sample]:
        """Samples that work."""
        return [sample for sample in self.samples if sample.fits]

    def call(self, sample: Sample, key: str | None = None) -> Call:
        """A call of its own, unless the key says that it is a repeat."""
        name = key or hashlib.sha256(f"{next(self._keys)}".encode()).hexdigest()
        spec = self.specs()[sample.tool]
        asked = Call(tool=sample.tool, arguments=sample.arguments, effect=spec.effect, idempotency_key=name)
        return Call(sample.tool, sample.arguments, self.adapter.effect_of(asked) or spec.effect, name)

    def seed(self) -> int:
        """For an engine of its own, whose keys nobody has seen."""
        return next(self._keys)

    def ctx(self, call: Call) -> Ctx:
        """Surroundings in the bench's folder."""
        return context(workdir=self.folder, idempotency_key=call.idempotency_key)

    def tree(self) -> dict[str, tuple[int, str]]:
        """Everything in the folder: mode and content."""
        found = {}
        for path in sorted(self.folder.rglob("*")):
            if ".everstep" in path.parts:
                continue
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[str(path.relative_to(self.folder))] = (path.lstat().st_mode, content)
        return found
