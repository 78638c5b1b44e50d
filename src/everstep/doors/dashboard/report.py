"""`everstep show TASK --html FILE`: one task in one file that needs no server and asks nobody.

The dashboard's own timeline, inspector and journal, with what they show beside them as text. A policy of hashes lets
what stands here run, and nothing else.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any, Final, TypeAlias

from everstep.domain.errors import NotFound

Json: TypeAlias = dict[str, Any]

SCRIPT: Final = "report/report.js"
STYLE: Final = "report/report.css"
_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def write_html(file: Path, report: Json, static: Path) -> None:
    """Write it; raises NotFound where the dashboard is not built."""
    try:
        script, style = (static / SCRIPT).read_text("utf-8"), (static / STYLE).read_text("utf-8")
    except FileNotFoundError:
        raise NotFound(
            "the dashboard is not built here", what_to_do="python scripts/build_dashboard.py, then again"
        ) from None
    file.write_text(page(report, script.replace("</script", "<\\/script"), style), "utf-8")


def page(report: Json, script: str, style: str) -> str:
    """The document."""
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    data = json.dumps(report, ensure_ascii=False).translate(_ESCAPES)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>everstep</title>\n'
        f"<style>{style}</style></head>\n"
        '<body><div id="app"></div>\n'
        f'<script type="application/json" id="report">{data}</script>\n'
        f"<script>{script}</script></body></html>\n"
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
