"""Tools of a fleet under trial, for `everstep worker`: they write down what they do where the trial says."""

import os
from pathlib import Path

from everstep import Ctx, tool
from everstep.torture.workload import Workload
from everstep.torture.world import EffectLog, trial_tools

log = EffectLog(Path(os.environ["EVERSTEP_EFFECT_LOG"]), lambda *_: True)
pure, idempotent, verifiable, once = trial_tools(log, Workload(call_s=float(os.environ["EVERSTEP_EFFECT_LOG_CALL_S"])))


@tool("crew.busy", effect="pure")
def busy(until: str, *, ctx: Ctx) -> int:
    """Compute for all it is worth, until a file of that name is there."""
    log.write("start", ctx, None)
    rounds = 0
    while not Path(until).exists():
        rounds += sum(n * n % 7 for n in range(100_000)) > 0
    log.write("end", ctx, None)
    return rounds
