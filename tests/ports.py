"""Ports for servers that are told where to listen, and are found there again after a restart."""

import errno
import secrets
import socket
from pathlib import Path

LOWEST = 10_000


def free_port() -> int:
    """One that nobody listens at, and that the system gives to no outgoing connection meanwhile."""
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = LOWEST + secrets.randbelow(first_given - LOWEST)  # not `random`: all workers have the same seed
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            else:
                return port
