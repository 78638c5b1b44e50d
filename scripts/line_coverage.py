"""The last step of `make coverage`: what share of lines and of branches ran; fails below 95 % of the lines."""

import json
import subprocess
import sys
from typing import Final

FLOOR: Final = 95.0


def main() -> int:
    counted = json.loads(subprocess.run(["coverage", "json", "-q", "-o", "-"], check=True, capture_output=True).stdout)
    totals = counted["totals"]
    lines = 100 * totals["covered_lines"] / totals["num_statements"]
    branches = 100 * totals["covered_branches"] / totals["num_branches"]
    print(f"lines {lines:.2f} %, branches {branches:.2f} %")
    return int(lines <= FLOOR)


if __name__ == "__main__":
    sys.exit(main())
