"""A store never crosses `fork`: in the child it is dead, and does not even close what the parent still uses."""

import ctypes
import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """What has to be told."""

    def poison(self) -> None:
        """In the child: refuse everything from now on, and touch nothing."""


_open: "weakref.WeakSet[Forked]" = weakref.WeakSet()


def watch(store: Forked) -> None:
    """Tell this store when it finds itself in a child."""
    _open.add(store)


def unwatch(store: Forked) -> None:
    """It is closed."""
    _open.discard(store)


def bury(connection: object) -> None:
    """Keep a connection from ever being finalised here: that would checkpoint the parent's file."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _in_child() -> None:
    for store in list(_open):
        store.poison()


os.register_at_fork(after_in_child=_in_child)
