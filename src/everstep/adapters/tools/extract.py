"""`text.extract`: a regular expression over a text. Some take for ever on some texts: it is a process of its own."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from everstep.adapters.isolation.bounds import Walls, bounds_of, ran, refuse_broken
from everstep.adapters.isolation.child import Child, Program
from everstep.adapters.tools.family import closed, spec_of
from everstep.domain.ids import Millis
from everstep.domain.values import JsonValue
from everstep.ports.adapter import ToolAdapter
from everstep.ports.tool import Call, Ctx, Misconfigured, ToolSpec

CPU_S: Final = 2.0
MATCHES_MAX: Final = 10_000
_PROGRAM: Final = f"""
import json, re, sys
said = json.load(sys.stdin)
found = []
for match in re.finditer(said["pattern"], said["text"]):
    groups, named = list(match.groups()), match.groupdict()
    found.append({{"text": match[0], "start": match.start(), "groups": groups, "named": named}})
    if len(found) == min(said["limit"], {MATCHES_MAX}):
        break
json.dump(found, sys.stdout)
"""


class ExtractTools(ToolAdapter):
    """The one tool."""

    def __init__(self, walls: Walls) -> None:
        self._walls = walls

    def tools(self) -> Sequence[ToolSpec]:
        """Always there."""
        return (_SPEC,)

    def validate(self, call: Call) -> Sequence[tuple[str, str]]:
        """A pattern that is none."""
        try:
            re.compile(str(call.arguments.get("pattern", "")))
        except (re.error, RecursionError, OverflowError) as error:
            return [("/pattern", f"is no regular expression: {error}")]
        return ()

    async def execute(self, call: Call, ctx: Ctx) -> JsonValue:
        """Find them, within two seconds of CPU time."""
        import tempfile

        order = {"limit": MATCHES_MAX, **call.arguments}
        with tempfile.TemporaryDirectory(prefix="everstep-extract-") as folder:
            program = Program(
                argv=(sys.executable, "-I", "-S", "-c", _PROGRAM),
                cwd=folder,
                stdin=json.dumps(order).encode(),
                bounds=replace(bounds_of(ctx), cpu_s=CPU_S, output_bytes=16 << 20),
                uid=None,
                reads=tuple({sys.prefix, sys.base_prefix}),
                require=self._walls.require.get(call.tool, ""),
            )
            ended = await ran(Child(program), ctx)
        refuse_broken(ended, call.tool)
        if ended.exit_code != 0:
            said = bytes(ended.stderr.data[-300:]).decode(errors="replace").strip()
            raise Misconfigured(f"the text could not be searched: {said}", code="bad_argument")
        return {"matches": json.loads(bytes(ended.stdout.data))}


_PLAIN: Final = spec_of(
    "text.extract",
    "Find in a text",
    "Find every match of a regular expression (Python's) in a text.",
    takes={
        "text": {"type": "string"},
        "pattern": {"type": "string", "minLength": 1, "maxLength": 10_000},
        "limit": {"type": "integer", "minimum": 1, "maximum": MATCHES_MAX, "description": "So many at most"},
    },
    needs=("text", "pattern"),
    gives=closed(
        {
            "matches": {
                "type": "array",
                "items": closed(
                    {
                        "text": {"type": "string"},
                        "start": {"type": "integer"},
                        "groups": {"type": "array", "items": {"type": ["string", "null"]}},
                        "named": {"type": "object"},
                    }
                ),
            }
        }
    ),
    isolation="process",
    timeout_ms=Millis(30_000),
)
_SPEC: Final = replace(_PLAIN, pool="shell")
