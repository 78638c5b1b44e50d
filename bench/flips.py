"""A folder and a link to the outside change places as fast as they can, while files are written through them.

    python -m bench.flips                       a minute for each way to open a path

Nothing may ever appear outside. Exit 1 if something does.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from everstep.adapters import beneath
from everstep.adapters.files import Expected, Workspace
from everstep.ports.tool import ToolError


def play(opener: beneath.Opener, seconds: float) -> tuple[int, int, int]:
    """Flips, files written, and files that appeared outside."""
    with tempfile.TemporaryDirectory(prefix="everstep-flips-") as folder:
        root, outside = Path(folder) / "root", Path(folder) / "outside"
        (root / "real").mkdir(parents=True)
        outside.mkdir()
        (root / "link").symlink_to(outside)
        flips, written, stop = 0, 0, threading.Event()
        exchange = beneath._renameat2()
        assert exchange is not None

        def flip() -> None:
            nonlocal flips
            at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
            while not stop.is_set():
                exchange(at, b"real", at, b"link", 2)  # RENAME_EXCHANGE
                flips += 1
            os.close(at)

        flipping = threading.Thread(target=flip)
        flipping.start()
        until = time.monotonic() + seconds
        with Workspace(root, opener=opener) as files:
            while time.monotonic() < until:
                try:
                    files.write("real/file", b"x" * 100, key=str(written), expected=Expected())
                    written += 1
                except (ToolError, OSError):
                    continue
        stop.set()
        flipping.join()
        return flips, written, len(list(outside.iterdir()))


def main() -> int:
    """Both ways."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    found = 0
    for name, opener in (("step by step", beneath.walk), ("by the kernel", beneath.openat2())):
        if opener is not None:
            flips, written, outside = play(opener, given.seconds)
            print(f"{name}: {flips} flips, {written} files written, {outside} outside")
            found += outside
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
