"""Tools of a fleet under trial, for `everstep worker`: they write down what they do where the trial says."""

import os
from pathlib import Path

from everstep.torture.workload import Workload
from everstep.torture.world import EffectLog, trial_tools

log = EffectLog(Path(os.environ["EVERSTEP_EFFECT_LOG"]), lambda *_: True)
pure, idempotent, verifiable, once = trial_tools(log, Workload(call_s=float(os.environ["EVERSTEP_EFFECT_LOG_CALL_S"])))
