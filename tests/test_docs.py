"""Every page can be reached, and no link leads nowhere."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def named(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    return [name for part in (nav if isinstance(nav, list) else nav.values()) for name in named(part)]  # type: ignore[attr-defined]


def test_every_page_has_its_place() -> None:
    pages = {
        str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "adr"
    }
    assert set(named(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])) == pages


def test_no_link_leads_nowhere() -> None:
    dead = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in PAGES
        for link in LINK.findall(re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL))
        if "://" not in link and not link.startswith("#") and not (page.parent / link.partition("#")[0]).exists()
    ]
    assert dead == []
