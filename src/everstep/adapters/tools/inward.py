"""The families that reach nothing: texts, values, waits and questions."""

from collections.abc import Iterator

from everstep.adapters.isolation.bounds import Walls
from everstep.adapters.tools.extract import ExtractTools
from everstep.adapters.tools.flow import FlowTools
from everstep.adapters.tools.text import text_tools
from everstep.adapters.tools.values import json_tools
from everstep.ports.adapter import ToolAdapter
from everstep.wire.values import Codec


def inward(codec: Codec, walls: Walls) -> Iterator[ToolAdapter]:
    """All of them."""
    yield text_tools()
    yield ExtractTools(walls)
    yield json_tools(codec)
    yield FlowTools(codec)
