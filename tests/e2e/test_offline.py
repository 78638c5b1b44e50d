"""The local index needs no network: it works where there is none."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, ctypes, os, socket, sys
NEWUSER, NEWNET = 0x10000000, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(NEWNET if os.geteuid() == 0 else NEWNET | NEWUSER):
    sys.exit(f"no namespace: {os.strerror(ctypes.get_errno())}")
probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    probe.connect(("192.0.2.1", 9))
    sys.exit("there is a network")
except OSError:
    probe.close()
from everstep import Engine, Plan
plan = Plan("looking")
hits = plan.step("hits", "search.local", {"query": "journal"})
plan.output(found=hits.results)
async def main():
    async with Engine(config={"store": "s.db", "workspace": "."}) as engine:
        print([one["path"] for one in (await engine.run(plan)).outputs["found"]])
asyncio.run(main())
"""


@pytest.mark.req("T.5")
def test_the_local_index_in_an_empty_network(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# A journal\nthat survives")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "['note.md']", done.stderr
