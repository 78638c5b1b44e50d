"""Which sockets are left to a process, by the network it may have: tried by one that has the filter."""

import json
import subprocess
import sys

import pytest

KINDS = {
    "TCP": (2, 1, 0),
    "TCP by name": (2, 1, 6),
    "TCP of version 6": (10, 1 | 0o2004000, 6),  # non-blocking, closed by the next program
    "local": (1, 1, 0),
    "UDP": (2, 2, 0),
    "UDP of version 6": (10, 2, 17),
    "what resembles TCP": (2, 1, 262),
    "raw": (2, 3, 1),
    "netlink": (16, 3, 0),
    "packet": (17, 3, 0),
    "vsock": (40, 1, 0),
}
LEFT = {
    "none": {"local", "netlink"},
    "proxy": {"local", "TCP", "TCP by name", "TCP of version 6"},
    "host": {*KINDS} - {"packet", "vsock"},
}
TRY = """
import ctypes, errno, json, socket, sys
from everstep.adapters.isolation.seccomp import seccomp
kinds, network = json.loads(sys.argv[1]), sys.argv[2]
def there(kind):
    try:
        socket.socket(*kind).close()
    except OSError as error:
        return error.errno != errno.EPERM
    return True
before = {name for name, kind in kinds.items() if there(kind)}
plain = socket.socket()
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
assert seccomp(network)
left = {name for name, kind in kinds.items() if there(kind)}
try:
    plain.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", 1))
    sent = True
except OSError as error:
    sent = error.errno != errno.EPERM
print(json.dumps([sorted(before), sorted(left), sent]))
"""


@pytest.mark.parametrize("network", [*LEFT])
def test_the_sockets_that_are_left(network: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", TRY, json.dumps(KINDS), network], capture_output=True, check=True, timeout=60
    )
    before, left, connects_by_sending = json.loads(said.stdout)
    assert set(left) == LEFT[network] & set(before)
    assert {"TCP", "UDP", "local"} <= set(before)
    assert connects_by_sending is (network != "proxy")
