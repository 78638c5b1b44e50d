"""Tools of other frameworks, by what they look like: nothing of theirs is imported, and nothing of them is changed.

Each gives an ordinary tool: schema as it stands, calls with named arguments, effect `once` unless said.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, Unpack

from everstep.authoring.dump import dump
from everstep.authoring.signature import Signature
from everstep.authoring.tool import FunctionTool, ToolOptions, check_options, make, serve
from everstep.domain.values import JsonObject

Tool: TypeAlias = FunctionTool[..., Any]
_Said: TypeAlias = tuple[str, Any, Any]
"""Name, description and schema, as they were found."""
_SAYS: Final = ("name", "description", "parameters")


def from_function(function: Callable[..., object], name: str | None = None, **options: Unpack[ToolOptions]) -> Tool:
    """A function with hints and docstring, as `@tool` takes it."""
    check_options(options)
    return make(function, name, options)


def from_openai(schema: object, function: Callable[..., object] | None = None, **options: Unpack[ToolOptions]) -> Tool:
    """A function schema and the callable behind it; or a function tool that brings both."""
    check_options(options)
    if function is None:
        said = _parts(schema, "name", "description", "params_json_schema")
        invoke = getattr(schema, "on_invoke_tool", None)
        if said is None or invoke is None:
            raise TypeError("from_openai takes a schema and a function, or a function tool with `on_invoke_tool`")
        return _made(said, partial(_by_text, invoke, said[0]), options)
    inner = schema.get("function", schema) if isinstance(schema, Mapping) else None
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise TypeError(f"from_openai: this is no function schema: {schema!r:.200}")
    name, description, parameters = (inner.get(key) for key in _SAYS)
    said = (str(name), description, parameters or {"type": "object", "properties": {}})
    return _made(said, function, options)


def from_langchain(tool: object, **options: Unpack[ToolOptions]) -> Tool:
    """An object with `name`, `description`, `args_schema` and `ainvoke` or `invoke`."""
    check_options(options)
    said = _parts(tool, "name", "description", "args_schema")
    call = getattr(tool, "ainvoke", None) or getattr(tool, "invoke", None)
    if said is None or call is None:
        raise TypeError(f"from_langchain: no tool with name, description, args_schema and invoke: {tool!r:.200}")
    return _made(said, partial(_by_object, call), options)


def from_pydantic_ai(tool: object, **options: Unpack[ToolOptions]) -> Sequence[Tool]:
    """A tool, or a toolset with its `tools`. One that wants their run context has none here."""
    check_options(options)
    inside = getattr(tool, "tools", None)
    return [_of_pydantic_ai(one, options) for one in (inside.values() if isinstance(inside, Mapping) else [tool])]


def _of_pydantic_ai(tool: object, options: ToolOptions) -> Tool:
    said = _parts(tool, "name", "description", "function_schema")
    function = getattr(tool, "function", None)
    if said is None or function is None:
        raise TypeError(f"from_pydantic_ai: no tool with name, function and function_schema: {tool!r:.200}")
    name, description, schema = said
    if getattr(tool, "takes_ctx", False):
        raise TypeError(f"tool '{name}' wants the run context of its own framework: write a function without it")
    return _made((name, description, getattr(schema, "json_schema", None)), function, options)


def _parts(tool: object, *names: str) -> _Said | None:
    name, description, schema = (getattr(tool, one, None) for one in names)
    return None if not isinstance(name, str) or schema is None else (name, description, schema)


def _made(said: _Said, function: Callable[..., object], options: ToolOptions) -> Tool:
    name, description, schema = said
    signature = Signature(
        description=description if isinstance(description, str) else "",
        input_schema=_closed(name, schema),
        output_schema=None,
        takes_ctx=False,
        loads=(),
        dump=dump,
    )
    return serve(_called(name, function), name, signature, options)


def _called(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """A plain function, as ours are: async if what is behind it is."""
    behind = function.func if isinstance(function, partial) else function
    if inspect.iscoroutinefunction(behind) or inspect.iscoroutinefunction(type(behind).__call__):

        async def call(**arguments: object) -> object:
            return await function(**arguments)  # type: ignore[misc]
    else:

        def call(**arguments: object) -> object:  # type: ignore[misc]
            return function(**arguments)

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    return call


def _closed(name: str, schema: object) -> JsonObject:
    """Their schema with our kinds: every argument is data, none is taken for a path or an address."""
    asked = getattr(schema, "model_json_schema", None)
    said = asked() if callable(asked) else schema
    if not isinstance(said, Mapping) or said.get("type", "object") != "object":
        raise TypeError(f"tool '{name}': its arguments are no JSON Schema of an object")
    properties = said.get("properties") or {}
    kinds = {key: {"x-everstep-kind": "opaque", **one} for key, one in properties.items()}
    return {"additionalProperties": False, **said, "type": "object", "properties": kinds}


async def _by_object(call: Callable[[object], object], **arguments: object) -> object:
    answer = call(arguments)
    return await answer if isinstance(answer, Awaitable) else answer


class NoCaller:
    """Stands in for what a function tool of theirs may ask about its caller: there is none, and it says so."""

    def __init__(self, tool: str, arguments: str) -> None:
        self.tool_name = tool
        self.tool_arguments = arguments
        self.tool_call_id = ""

    def __getattr__(self, name: str) -> None:
        """No agent, no configuration, no usage."""
        if name.startswith("__"):
            raise AttributeError(name)


async def _by_text(invoke: Callable[[object, str], Awaitable[object]], tool: str, /, **arguments: object) -> object:
    said = json.dumps(arguments)
    return await invoke(NoCaller(tool, said), said)
