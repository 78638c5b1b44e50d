"""What was measured, kept in `bench/out/latest.json`: a part per measurement, with when, on what, under which load."""

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
OUT: Final = ROOT / "bench" / "out"
LATEST: Final = OUT / "latest.json"


@dataclass(frozen=True)
class Figure:
    """One figure as people read it; `met` is None where nothing was promised."""

    what: str
    value: str
    target: str = ""
    met: bool | None = None


def at_most(what: str, value: float, most: float, unit: str = "ms") -> Figure:
    """A figure with a ceiling."""
    return Figure(what, f"{value:,.3g} {unit}", f"≤ {most:g} {unit}", value <= most)


def at_least(what: str, value: float, least: float, unit: str = "") -> Figure:
    """A figure with a floor."""
    return Figure(what, f"{value:,.3g} {unit}".strip(), f"≥ {least:g} {unit}".strip(), value >= least)


def keep(name: str, command: str, figures: Sequence[Figure], raw: Any = None) -> None:  # noqa: ANN401 -- as it was measured
    """In place of what was measured under this name before."""
    OUT.mkdir(parents=True, exist_ok=True)
    kept = read()
    kept[name] = {
        "command": command,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": machine(),
        "figures": [asdict(figure) for figure in figures],
        "raw": raw,
    }
    LATEST.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def read() -> dict[str, Any]:
    """Every part by its name."""
    parts: dict[str, Any] = json.loads(LATEST.read_text(encoding="utf-8")) if LATEST.exists() else {}
    return parts


def machine() -> dict[str, Any]:
    """What it was measured on; the load is that of the minute before the end, this measurement included."""
    import apsw

    return {
        "system": platform.system(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def _commit() -> str | None:
    said = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return said.stdout.strip() or None
