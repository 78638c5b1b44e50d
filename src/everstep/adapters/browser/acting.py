"""What a plan may do on a page: a table of small acts, each with a name and its arguments.

A deed is waited for before it is done: one that could not begin was not made, one that did not end may have been.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, Final, TypeAlias

from everstep.adapters.browser.page import ACTION_S, Sheet
from everstep.adapters.files import Workspace
from everstep.domain.handles import media_type_of
from everstep.domain.values import JsonObject

Act: TypeAlias = Callable[[Sheet, Any, Path], Awaitable[None]]
_MOST: Final = ACTION_S * 1000
READY_S: Final = ACTION_S
UPLOAD_BYTES: Final = 50_000_000
"""More is not taken over the pipe."""


async def act(sheet: Sheet, action: Mapping[str, Any], workdir: Path) -> None:
    """One action: `{click: "#save"}`; raises `browser_element`."""
    from playwright.async_api import TimeoutError as TooLong

    ((name, said),) = action.items()
    selector = str(said.get("selector", "body") if isinstance(said, dict) else said)
    try:
        if name not in _LOOKS:
            await _ready(sheet, name, selector)
            sheet.begin()
        await ACTS[name](sheet, said, workdir)
    except TooLong:
        raise await sheet.missing(selector) from None
    if name not in _LOOKS:
        sheet.done()


async def _ready(sheet: Sheet, name: str, selector: str) -> None:
    """What it is done to is there; what is clicked could be."""
    found, most = sheet.page.locator(selector).first, READY_S * 1000
    if name == "click":
        await found.click(trial=True, timeout=most)
    else:
        await found.wait_for(state="attached" if name in _UNSEEN else "visible", timeout=most)


async def _goto(sheet: Sheet, said: str, _: Path) -> None:
    await sheet.open(said)


async def _click(sheet: Sheet, said: str, _: Path) -> None:
    await sheet.page.locator(said).first.click(timeout=_MOST)


async def _fill(sheet: Sheet, said: dict[str, Any], _: Path) -> None:
    await sheet.page.locator(said["selector"]).first.fill(said["text"], timeout=_MOST)


async def _select(sheet: Sheet, said: dict[str, Any], _: Path) -> None:
    await sheet.page.locator(said["selector"]).first.select_option(said["value"], timeout=_MOST)


async def _press(sheet: Sheet, said: dict[str, Any], _: Path) -> None:
    await sheet.page.locator(said.get("selector", "body")).first.press(said["key"], timeout=_MOST)


async def _upload(sheet: Sheet, said: dict[str, Any], workdir: Path) -> None:
    path = str(said["path"])
    with Workspace(workdir) as files:  # the browser itself cannot read it
        data = files.whole(path, UPLOAD_BYTES)
    handed = {"name": PurePath(path).name, "mimeType": media_type_of(path), "buffer": data}
    await sheet.page.locator(said["selector"]).first.set_input_files(handed, timeout=_MOST)


async def _wait(sheet: Sheet, said: dict[str, Any], _: Path) -> None:
    await sheet.wait(said)


async def _extract(sheet: Sheet, said: dict[str, Any], _: Path) -> None:
    found = sheet.page.locator(said["selector"])
    await found.first.wait_for(state="attached", timeout=_MOST)
    attribute = said.get("attribute")

    async def value(one: Any) -> Any:
        return await (one.get_attribute(attribute) if attribute else one.inner_text(timeout=_MOST))

    many = [await value(one) for one in await found.all()] if said.get("all") else None
    sheet.extracted[said["name"]] = await value(found.first) if many is None else many


ACTS: Final[Mapping[str, Act]] = {
    "goto": _goto,
    "click": _click,
    "fill": _fill,
    "select": _select,
    "press": _press,
    "upload": _upload,
    "wait": _wait,
    "extract": _extract,
}
_LOOKS: Final = frozenset({"wait", "extract", "goto"})
_UNSEEN: Final = frozenset({"press", "upload"})
"""They need no element that can be seen."""

_TEXT: Final[JsonObject] = {"type": "string", "minLength": 1}


def _object(**fields: Any) -> JsonObject:
    needed: list[Any] = [name for name in fields if not name.endswith("_")]
    properties = {name.rstrip("_"): schema for name, schema in fields.items()}
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


WAIT_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "selector": _TEXT,
        "state": {"enum": ["visible", "attached", "hidden", "enabled"]},
        "text": _TEXT,
        "url": _TEXT,
        "network_idle": {"type": "boolean"},
    },
    "minProperties": 1,
    "additionalProperties": False,
}
_SHAPES: Final[dict[str, JsonObject]] = {
    "goto": {**_TEXT, "x-everstep-kind": "checked"},
    "click": _TEXT,
    "fill": _object(selector=_TEXT, text={"type": "string"}),
    "select": _object(selector=_TEXT, value={"type": ["string", "array"]}),
    "press": _object(key=_TEXT, selector_=_TEXT),
    "upload": _object(selector=_TEXT, path={**_TEXT, "x-everstep-kind": "checked"}),
    "wait": WAIT_SCHEMA,
    "extract": _object(name=_TEXT, selector=_TEXT, attribute_=_TEXT, all_={"type": "boolean"}),
}
ACTIONS_SCHEMA: Final[JsonObject] = {
    "type": "array",
    "minItems": 1,
    "maxItems": 100,
    "items": {
        "type": "object",
        "properties": dict(_SHAPES),
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    },
}
