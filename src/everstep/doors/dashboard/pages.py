"""The pages: one document for every place, and files whose names change with their content. No data, no private route.

Everything is open by exact match, because a browser asks for it before anybody has signed in; what a page shows it
asks `/v1` for, with a token. The policy lets it run its own files only and ask nobody else.
"""

import gzip
import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from everstep.domain.record import record
from everstep.doors.api import Response
from everstep.doors.http.answer import Receive, Scope, Send, send_response
from everstep.doors.http.body import headers_of
from everstep.doors.http.gate import path_of

STATIC: Final = Path(__file__).with_name("static")
DOCUMENT: Final = "index.html"
NOT_BUILT: Final = (
    "The dashboard is not built here. Run `python scripts/build_dashboard.py`, then reload. The API works.\n"
)
PLACE: Final = re.compile(r"/(?:inbox|plans|health|stats)?|/(?:tasks|inbox|plans)/[^/]{1,200}")
"""Every place of the dashboard; which one it is, the document finds out by itself."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'; trusted-types everstep"
)
HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_AT_THE_TOP: Final = re.compile(rb'"/(?!>)')
FOR_EVER: Final = "public, max-age=31536000, immutable"
ASK_AGAIN: Final = "no-cache"


@record
class File:
    """One file, ready to be sent."""

    body: bytes
    packed: bytes
    type: str
    caching: str


def is_built(static: Path = STATIC) -> bool:
    """Whether there is a dashboard to be served."""
    return (static / DOCUMENT).is_file()


class Pages:
    """Answers a browser that has no token yet."""

    def __init__(self, static: Path = STATIC) -> None:
        self._files = {name: file for name, file in _read(static) if is_built(static)}

    def holds(self, path: str) -> bool:
        """Whether this is a page or a file of ours; nothing else is open."""
        return path in self._files or PLACE.fullmatch(path) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive  # a page is asked for without a body
        file = self._files.get(path_of(scope)) or self._document(scope.get("root_path", ""))
        if file is None:
            headers = {**HEADERS, "content-type": "text/plain; charset=utf-8", "cache-control": "no-store"}
            await send_response(Response(status=503, headers=headers, body=NOT_BUILT.encode()), send)
            return
        packs = "gzip" in headers_of(scope).get("accept-encoding", "")
        headers = {**HEADERS, "content-type": file.type, "cache-control": file.caching, "vary": "accept-encoding"}
        if packs:
            headers["content-encoding"] = "gzip"
        await send_response(Response(status=200, headers=headers, body=file.packed if packs else file.body), send)

    def _document(self, root: str) -> File | None:
        """The document, as it is where this app is mounted."""
        file = self._files.get(f"/{DOCUMENT}")
        if file is None or not root:
            return file
        at = html.escape(root, quote=True).encode()
        body = _AT_THE_TOP.sub(lambda _: b'"' + at + b"/", file.body)
        return File(body=body, packed=gzip.compress(body, mtime=0), type=file.type, caching=file.caching)


def _read(static: Path) -> Iterator[tuple[str, File]]:
    """Every file by its path; those in `assets` are named by their content and never change."""
    for path in sorted(static.rglob("*")):
        name = path.relative_to(static).as_posix()
        if path.suffix in TYPES and not name.startswith("report/"):
            body = path.read_bytes()
            if name == DOCUMENT:
                body = body.replace(b'"./', b'"/')  # whatever place it is asked for at, its files are at the top
            caching = FOR_EVER if name.startswith("assets/") else ASK_AGAIN
            yield (
                f"/{name}",
                File(body=body, packed=gzip.compress(body, mtime=0), type=TYPES[path.suffix], caching=caching),
            )
