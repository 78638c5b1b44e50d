"""A full-text index of a workspace, in a file of its own beneath it: what changed is read again, what is gone goes.

A query is quoted word by word, so that nothing anybody types is a mistake. A broken index is made anew.
"""

import hashlib
import html
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from everstep.adapters.files import Workspace
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import ToolError

FILE: Final = Path(".everstep") / "search.db"
BYTES_MAX: Final = 2_000_000
FILES_MAX: Final = 20_000
KINDS: Final = frozenset(
    {".txt", ".md", ".markdown", ".rst", ".html", ".htm", ".csv", ".log", ".toml", ".yaml", ".yml"}
)
_TAGS: Final = re.compile(r"(?is)<(script|style)\b.*?</\1>|<[^>]{0,2000}>")
_WORDS: Final = re.compile(r"\w+", re.UNICODE)

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, size INTEGER, mtime INTEGER, sha256 TEXT, id INTEGER);
CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (title, body, tokenize = 'unicode61 remove_diacritics 2');
"""
_FIND: Final = """
SELECT files.path, texts.title, snippet(texts, 1, '', '', ' … ', 24), bm25(texts)
FROM texts JOIN files ON files.id = texts.rowid
WHERE texts MATCH ? ORDER BY bm25(texts), files.path
"""


def search(workdir: Path, query: str, *, glob: str, limit: int) -> JsonObject:
    """Hits, best first; and how many files there are."""
    place = workdir / FILE
    place.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        return _search(workdir, place, query, glob=glob, limit=limit)
    except sqlite3.DatabaseError:
        for file in (place, *place.parent.glob(f"{place.name}-*")):
            file.unlink(missing_ok=True)
        return _search(workdir, place, query, glob=glob, limit=limit)


def _search(workdir: Path, place: Path, query: str, *, glob: str, limit: int) -> JsonObject:
    with closing(sqlite3.connect(place, timeout=10, isolation_level=None)) as base:
        base.executescript(_SCHEMA)
        indexed, skipped = _refresh(base, workdir)
        words = [f'"{word}"' for word in _WORDS.findall(query)]
        hits: list[JsonValue] = []
        for path, title, snippet, score in base.execute(_FIND, (" ".join(words),)) if words else ():
            if fnmatch(path, glob) or fnmatch(path.rpartition("/")[2], glob):
                hits.append({"path": path, "title": title, "snippet": snippet.strip(), "score": round(-score, 6)})
            if len(hits) >= limit:
                break
    return {"results": hits, "indexed": indexed, "skipped": skipped}


def _refresh(base: sqlite3.Connection, workdir: Path) -> tuple[int, int]:
    """Bring the index up to date: by size and time, then by hash."""
    known = {row[0]: row[1:] for row in base.execute("SELECT path, size, mtime, sha256, id FROM files")}
    seen: set[str] = set()
    skipped = 0
    base.execute("BEGIN IMMEDIATE")
    with Workspace(workdir) as files:
        for path, status in _texts(workdir):
            if status.st_size > BYTES_MAX or len(seen) >= FILES_MAX:
                skipped += 1
                continue
            seen.add(path)
            old = known.get(path)
            if old is not None and old[:2] == (status.st_size, status.st_mtime_ns):
                continue
            try:
                data = files.whole(path, BYTES_MAX)
                text = data.decode()
            except (ToolError, OSError, UnicodeDecodeError):
                seen.discard(path)
                skipped += 1
                continue
            digest = hashlib.sha256(data).hexdigest()
            if old is not None and old[2] == digest:
                base.execute("UPDATE files SET mtime = ? WHERE path = ?", (status.st_mtime_ns, path))
                continue
            _forget(base, path, old)
            title, body = _readable(path, text)
            row = base.execute("INSERT INTO texts (title, body) VALUES (?, ?)", (title, body)).lastrowid
            base.execute(
                "INSERT INTO files VALUES (?, ?, ?, ?, ?)", (path, status.st_size, status.st_mtime_ns, digest, row)
            )
    for path in known.keys() - seen:
        _forget(base, path, known[path])
    base.execute("COMMIT")
    return len(seen), skipped


def _forget(base: sqlite3.Connection, path: str, old: tuple[int, int, str, int] | None) -> None:
    if old is not None:
        base.execute("DELETE FROM texts WHERE rowid = ?", (old[3],))
        base.execute("DELETE FROM files WHERE path = ?", (path,))


def _texts(workdir: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Files that are read as text, links and hidden folders left out."""
    for folder, folders, names in os.walk(workdir):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(names):
            if Path(name).suffix.lower() in KINDS and not name.startswith("."):
                with suppress(OSError):
                    full = Path(folder) / name
                    status = full.lstat()
                    path = str(full.relative_to(workdir))
                    if os.path.isfile(full) and not full.is_symlink() and path.isprintable():  # noqa: PTH113
                        yield path, status


def _readable(path: str, text: str) -> tuple[str, str]:
    """Title and text; of HTML what people read."""
    if path.lower().endswith((".html", ".htm")):
        title = re.search(r"(?is)<title[^>]*>(.*?)</title>", text)
        plain = html.unescape(_TAGS.sub(" ", text))
        return (html.unescape(title[1]).strip() if title else path)[:300], plain
    first = next((line.strip("# \t") for line in text.splitlines() if line.strip("# \t")), path)
    return first[:300], text
