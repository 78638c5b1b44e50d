"""Public spellings for whoever writes tools, or brings those of another framework. No code.

from everstep.tools import from_langchain

engine = Engine("work.db", tools=[from_langchain(search, effect="pure")])
"""

from everstep.authoring.exported import to_openai
from everstep.authoring.imported import from_function, from_langchain, from_openai, from_pydantic_ai
from everstep.domain.failure import Failure
from everstep.domain.plan import Effect
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.function import ProbeAnswer
from everstep.ports.tool import Call, Deferred, Health, Prior, Probed, ToolSpec

__all__ = [
    "Call",
    "Deferred",
    "Effect",
    "Failure",
    "Health",
    "JsonObject",
    "JsonValue",
    "Prior",
    "ProbeAnswer",
    "Probed",
    "ToolSpec",
    "from_function",
    "from_langchain",
    "from_openai",
    "from_pydantic_ai",
    "to_openai",
]
