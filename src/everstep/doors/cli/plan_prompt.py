"""`plan prompt`: all that a model needs to write a plan, as one text. Pure; calls no model."""

import json
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from everstep.wire.functions import plain
from everstep.wire.planschema import plan_schema

Json: TypeAlias = dict[str, Any]

_TASK: Final = """\
# Write a plan

Write one plan file for Everstep that reaches the goal below with the tools below. Answer with the YAML of the file and
nothing else: no words around it, no fence.

## Goal
"""
_RULES: Final = """\
## How a plan is written

- A plan is data: a `name` (small letters, digits and `-`), `inputs`, `steps` in order, `outputs`. What is not in the
  schema below is no key.
- Each step has an `id` (small letters, digits and `_`), a `tool` of the list below and its arguments in `with`. A tool
  that is not in the list does not exist.
- What a person may want to change, or what you do not know (addresses, names, places), is an input, never a guess.
- `${id.field}` is a field of what a step returned, `${inputs.name}` an input, `${item}` the item of a `for_each`. Write
  it in quotes. A text that is nothing but one `${...}` keeps the type of its value. Fields are those of the tool's
  output schema; where there is none, use the value as a whole.
- Between the braces there are fields, `[0]`, `== != < <= > >= in not in and or not`, `x if c else y`, and the functions
  `len default join json text lower upper trim`. No arithmetic, no clock, no chance, no code.
- A step waits for the one above it and for every step it takes data from. `when` leaves it out, `for_each` repeats it,
  `finally` holds steps that come however the others ended.
- Every tool says what a repeated call does: `pure` changes nothing, `idempotent` may be called again, `verifiable` can
  be looked up, `once` must not happen twice. Ask a person before what cannot be taken back:
  `approve: {title: "Send it to ${inputs.to}?"}`.
- Failed calls are retried by themselves; say `retry`, `fallback` or `on_error: continue` only where the plan means it.
- Durations are texts such as `30s` or `2h`. A secret is named (`${secrets.NAME}`), never written down.

A plan of another project, to show the form:

```yaml
name: greeting
inputs:
  to: string
steps:
  - id: words
    tool: text.join
    with: {texts: ["Dear", "${inputs.to}"], separator: " "}
  - id: note
    tool: file.write
    with: {path: "greeting.txt", text: "${words.text}"}
    approve: {title: "Write to ${inputs.to}?"}
outputs: {file: "${note.path}"}
```
"""


def prompt_for(goal: str, tools: Iterable[Json]) -> str:
    """The goal, the rules, the tools of this project, the schema."""
    parts = [_TASK, goal.strip(), "", _RULES, "## Tools", ""]
    for tool in tools:
        parts += [*_told(tool), ""]
    parts += ["## JSON Schema of a plan", "", "```json", _compact(plan_schema()), "```"]
    return "\n".join(parts) + "\n"


def _told(tool: Json) -> list[str]:
    described = " ".join((tool.get("description") or tool.get("title") or "").split())
    lines = [f"### {tool['name']} ({tool['effect']})", described, f"arguments: {_compact(plain(tool['input_schema']))}"]
    return lines + ([f"output: {_compact(plain(tool['output_schema']))}"] if tool.get("output_schema") else [])


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
