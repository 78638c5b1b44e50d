"""JSON Pointers (RFC 6901): the one way to name a place inside a value."""


def child(pointer: str, key: str | int) -> str:
    """The place of `key` inside the place `pointer`."""
    if isinstance(key, int):
        return f"{pointer}/{key}"
    if "~" in key or "/" in key:
        key = key.replace("~", "~0").replace("/", "~1")
    return f"{pointer}/{key}"


def parent(pointer: str) -> str:
    """The place around `pointer`; the root is around itself."""
    return pointer.rpartition("/")[0]


def keys(pointer: str) -> tuple[str, ...]:
    """The way to a place, unescaped."""
    return tuple(key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:])
