"""The local door: `/v1` as JSON Lines on a socket beside the store, for the same user only, without a token.

    {"method", "path", "headers", "body"}  ->  {"status", "headers", "body"}

One line each; event paths answer with frames instead, until the task ends or somebody hangs up. Whoever holds the
store opens the door, so a second terminal can watch, pause and answer what the first one started.

    door.py    answers         client.py  asks
    lines.py   how a request and a reply are written
    place.py   the socket's file, who is at its other end, and the lock that names it
"""

from everstep.doors.local.client import LocalClient, find_engine
from everstep.doors.local.door import LocalDoor, open_door
from everstep.doors.local.lines import refusal
from everstep.doors.local.place import read_lock

__all__ = ["LocalClient", "LocalDoor", "find_engine", "open_door", "read_lock", "refusal"]
