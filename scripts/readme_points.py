"""The proof points of the README, filled in from the reports that tests and long runs leave behind.

`make docs` and `make bench` write them, `make torture` with its report; what was measured here last is taken in.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
README: Final = ROOT / "README.md"
LATEST: Final = ROOT / "bench/out/latest.json"
BLOCK: Final = re.compile(r"(<!-- proof -->\n).*?(<!-- /proof -->)", re.DOTALL)
FAULT: Final = re.compile(r"^\| ([\w.]+) \|[^|]+\| *(\d*) *\| *(\d*) *\| *(\d*) *\| *(\d*) *\|", re.MULTILINE)
POWER_LOSS: Final = "F2"
COUNTED_ELSEWHERE: Final = frozenset({"F1d"})
"""Its trials are some of F1a."""
CALIBRATION: Final = "Estimates"
"""The part of the measurements that says how often estimates were right."""
COVERED: Final = re.compile(r"range held for (\S+ of \S+ tasks)")


def readme_page(measured: str | None = None) -> str:
    """The README with the figures of today; `measured`: how often estimates were right, if that was looked at again."""
    page = README.read_text(encoding="utf-8")
    said = COVERED.search(page)
    assert said is not None, "a README without its proof points"
    points = "".join(_points(measured or said[1]))
    return BLOCK.sub(lambda block: f"{block[1]}{points}{block[2]}", page)


def _points(covered: str) -> Iterator[str]:
    kills, states, violations = _faults()
    disks = f", {states:,} disks rebuilt after power cuts" if states else ""
    yield (
        f"- **Killed {kills:,} times in the last long run{disks}; lost or doubled: {violations}.** "
        "[Report](docs/proof.md), [test](tests/fault/test_kills.py)\n"
    )
    yield (
        f"- **Estimates say how sure they are.** The 80 % range held for {covered}. "
        "[Measured](bench/calibration.py), [test](tests/unit/engine/test_calibration.py)\n"
    )
    yield (
        "- **Works offline.** No account, no telemetry, no font from elsewhere. "
        "[Without a network](tests/e2e/test_offline.py), [in the browser](tests/browser/test_quality.py)\n"
    )
    verdicts = _conformance()
    passed, failed = verdicts["SUCCESS"], verdicts["FAILURE"]
    yield (
        f"- **Works from any MCP client.** {passed} of {passed + failed} checks of the official "
        "conformance suite pass, those about tasks all. [Table](tests/mcp_conformance/table.json), "
        "[test](tests/e2e/test_mcp_conformance.py)\n"
    )


def _faults() -> tuple[int, int, int]:
    """Kills, disk states and violations, of the table of faults alone; a kill that two rows tell of counts once."""
    page = (ROOT / "docs/proof.md").read_text(encoding="utf-8")
    table = page.partition("## Faults")[2].partition("\n## ")[0]
    found = {name: [int(one or 0) for one in figures] for name, *figures in FAULT.findall(table)}
    kills = sum(figures[1] for name, figures in found.items() if name not in COUNTED_ELSEWHERE)
    return kills, found[POWER_LOSS][2], sum(figures[3] for figures in found.values())


def _conformance() -> Counter[str]:
    """Verdicts of the official suite, each check once per revision."""
    counted: Counter[str] = Counter()

    def look(inside: object) -> None:
        for one in inside.values() if isinstance(inside, dict) else ():
            if isinstance(one, str):
                counted[one] += 1
            else:
                look(one)

    look(json.loads((ROOT / "tests/mcp_conformance/table.json").read_text(encoding="utf-8")))
    return counted


def main() -> None:
    """Write it, with what was measured here last."""
    parts = json.loads(LATEST.read_text(encoding="utf-8")) if LATEST.exists() else {}
    measured = str(parts[CALIBRATION]["figures"][0]["value"]) if CALIBRATION in parts else None
    README.write_text(readme_page(measured), encoding="utf-8")


if __name__ == "__main__":
    main()
