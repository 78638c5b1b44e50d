"""What the dashboard's sources may not hold: ways to run text as code, addresses of others, a registry's name."""

import json
import re
from pathlib import Path

DASHBOARD = Path(__file__).parents[4] / "dashboard"
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function"
    r"|(?:setTimeout|setInterval)\(['\"`]"
)


def test_no_text_is_ever_run_or_parsed_as_markup() -> None:
    sources = [path for path in (DASHBOARD / "src").rglob("*") if path.suffix in (".ts", ".tsx")]
    assert len(sources) > 20
    for path in sources:
        found = FORBIDDEN.search(path.read_text())
        assert found is None, f"{path.name}: {found}"


def test_the_lock_file_names_no_registry_and_pins_everything() -> None:
    packages = json.loads((DASHBOARD / "package-lock.json").read_text())["packages"]
    for name, package in packages.items():
        if name:
            assert "resolved" not in package
            assert package["integrity"].startswith("sha512-")
