"""What guarantees and security notes ask for has a test that is really there, and a page that says so."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from scripts.write_proof import figures, sights

ROOT = Path(__file__).parents[1]
ROWS: dict[str, dict[str, Any]] = tomllib.loads((ROOT / "proof.toml").read_text(encoding="utf-8"))
NOT_YET: set[str] = set()
"""Asked for, and not shown: the page says so."""


def test_every_named_test_is_there() -> None:
    missing = []
    for rows in ROWS.values():
        for name, row in rows.items():
            for test in row["tests"]:
                file, _, function = test.partition("::")
                text = (ROOT / file).read_text(encoding="utf-8") if (ROOT / file).is_file() else ""
                if not text or (function and not re.search(rf"def {re.escape(function)}\b", text)):
                    missing.append(f"{name}: {test}")
    assert missing == []


def test_every_command_is_there() -> None:
    said = {word for row in ROWS["faults"].values() for word in re.findall(r"python -m ([\w.]+)", row["command"])}
    places = [ROOT, ROOT / "src"]
    there = {word for word in said for place in places if (place / word.replace(".", "/")).with_suffix(".py").is_file()
             or (place / word.replace(".", "/") / "__main__.py").is_file()}  # fmt: skip
    assert said == there


def test_nothing_is_asked_for_in_vain() -> None:
    """Every check, fault and number has something that shows it, but for those that the page names."""
    unshown = {
        name for rows in ROWS.values() for name, row in rows.items() if not row["tests"] and not row.get("command")
    }
    assert unshown == NOT_YET
    assert {f"C{n}" for n in range(1, 15)} == set(ROWS["checks"])


def test_what_must_be_seen_is_counted_by_a_suite_that_is_there() -> None:
    starts = {start for row in ROWS["faults"].values() for start in row["lines"]}
    texts = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests/fault").glob("*.py"))
    wrong = [
        (name, start, count)
        for name, row in ROWS["seen"].items()
        for start, count in row["of"]
        if start not in starts or (count != "kills" and not re.search(rf"\b{count}\b", texts))
    ]
    assert wrong == []


def line(fault: str, **more: Any) -> dict[str, Any]:
    return {"fault": fault, "seed": 0, "verdict": "passed", "seconds": 0, "took_s": 7, **more}


def test_a_part_counts_by_what_it_has_said() -> None:
    rows = {"F": {"what": "", "command": "", "tests": [], "lines": ["part fleet"], "trials": ["server", "late"]}}
    told = line("part fleet", said=json.dumps({"server": 50, "late": [1, 2]}))
    (found,) = figures({"faults": rows}, [told])
    assert (found["trials"], found["seconds"]) == (52, 7)
    (found,) = figures({"faults": rows}, [line("part fleet", said="cut off after 1 min; {")])
    assert found["trials"] == 0


@pytest.mark.parametrize(("lines", "times"), [([], None), ([line("F1")], 0), ([line("F1", seen={"late": 2})], 2)])
def test_what_was_not_seen_is_told_apart_from_what_nobody_looked_for(
    lines: list[dict[str, Any]], times: int | None
) -> None:
    (found,) = sights({"late": {"what": "", "tests": [], "of": [["F1 ", "late"], ["F2 ", "late"]]}}, lines)
    assert found["times"] == times


def test_the_page_is_made_of_this() -> None:
    page = (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")
    for rows in ROWS.values():
        for name, row in rows.items():
            assert f"| {name} | {row['what']} |" in page, f"write it again: python scripts/write_proof.py ({name})"
