"""Public spellings for whoever writes a family of tools: `from everstep.tools import Call, ToolSpec`. No code."""

from everstep.domain.failure import Failure
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Call, Deferred, Health, Prior, Probed, ToolSpec

__all__ = ["Call", "Deferred", "Effect", "Failure", "Health", "JsonObject", "JsonValue", "Prior", "Probed", "ToolSpec"]
