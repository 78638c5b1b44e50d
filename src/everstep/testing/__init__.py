"""What users and our own tests need to try a plan, a tool or an engine.

    from everstep.testing import TestEngine, fake

Names are resolved when they are first used: failpoints of a real process must not load a test engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from everstep.testing.boundaries import CrashPoint, crash_points
    from everstep.testing.clock import VirtualClock
    from everstep.testing.conformance.sample import Sample
    from everstep.testing.conformance.tool import check_adapter
    from everstep.testing.engine import TestEngine
    from everstep.testing.fakes import fake
    from everstep.testing.replay import check_journal
    from everstep.testing.sim import sim_tools

__all__ = [
    "CrashPoint",
    "Sample",
    "TestEngine",
    "VirtualClock",
    "check_adapter",
    "check_journal",
    "crash_points",
    "fake",
    "sim_tools",
]

_HOMES: Final = {
    "CrashPoint": "everstep.testing.boundaries",
    "crash_points": "everstep.testing.boundaries",
    "Sample": "everstep.testing.conformance.sample",
    "TestEngine": "everstep.testing.engine",
    "VirtualClock": "everstep.testing.clock",
    "check_journal": "everstep.testing.replay",
    "check_adapter": "everstep.testing.conformance.tool",
    "fake": "everstep.testing.fakes",
    "sim_tools": "everstep.testing.sim",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- each name has a type of its own
    if name not in _HOMES:
        raise AttributeError(f"module 'everstep.testing' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
