"""The local door: `/v1` as JSON Lines on a socket beside the store, for the same user only, without a token.

    {"method", "path", "headers", "body"}  ->  {"status", "headers", "body"}

One line each; event paths answer with frames instead, until the task ends or somebody hangs up. Whoever holds the
store opens the door, so a second terminal can watch, pause and answer what the first one started.

    door.py    the socket      client.py  asks
    host.py    answers; loaded with the first caller
    lines.py   how a request and a reply are written
    place.py   the socket's file, who is at its other end, and the lock that names it
"""
