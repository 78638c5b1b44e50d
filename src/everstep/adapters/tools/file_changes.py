"""Changes of files: worked out and checked as a whole, written down, made one by one, taken back if one fails.

    permission -> disk reservation -> undo entry -> change
The undo entry makes every change idempotent: a repeat after a crash finds out how far the first try came.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from everstep.adapters.disk import Reservations
from everstep.adapters.files import ABSENT, Expected, FileState, Workspace
from everstep.adapters.undo_journal import Change, UndoJournal
from everstep.domain.record import record
from everstep.domain.values import JsonObject, JsonValue
from everstep.ports.tool import Denied, Impossible, Misconfigured, ResourceExceeded

BYTES_MAX: Final = 64 << 20
ENTRIES_MAX: Final = 10_000

Arguments: TypeAlias = dict[str, Any]


@record
class Wanted:
    """One change, and the content it brings."""

    change: Change
    data: bytes | None = None


@dataclass
class Work:
    """One call: where it works, and what it has looked at."""

    files: Workspace
    journal: UndoJournal
    key: str
    disk_bytes_max: int | None = None
    """What it may write; None: nobody says."""
    before: dict[str, bytes] = field(default_factory=dict)
    written_bytes: int = 0
    brought: bytes | None = None
    """What a copy from elsewhere brings."""

    def state(self, path: str) -> FileState:
        """What is there, its content kept for taking back; refused if it may not be changed."""
        self.files.may_change(path)
        found = self.files.state(path)
        if found.kind == "file":
            self.before[path] = self.files.whole(path, BYTES_MAX)
        return found


def change(work: Work, tool: str, arguments: Arguments, disk: Reservations) -> JsonValue:
    """Make the change of a call, or finish what an earlier try of it began."""
    done = work.journal.read(work.key)
    if done is not None and all(work.files.state(one.path).same(one.post) for one in done):
        return _told(work, tool, arguments, done, wanted={})
    if done is not None and not all(_of_ours(work, one) for one in done):
        raise Impossible("a file was changed by somebody else since this call began", code="file_conflict")
    if done is not None:
        _take_back(work, done)  # as it was, so that the whole can be worked out anew
    wanted = _with_folders(work, PLANNERS[tool](work, **arguments))
    paths = [one.change.path for one in wanted]
    if len(set(paths)) < len(paths):
        raise Misconfigured("a file is changed twice in one batch", code="bad_argument")
    if len(paths) > ENTRIES_MAX:
        raise Misconfigured(f"more than {ENTRIES_MAX} files are changed at once", code="bad_argument")
    for one in wanted:
        _keep_configuration(work, one)
    changes = [one.change for one in wanted]
    size = sum(len(one.data or b"") for one in wanted)
    most = work.disk_bytes_max
    if most is not None and size > most:
        what = f"{size:,} bytes are to be written, and {most:,} may be"
        raise ResourceExceeded(what, limit="disk", used=size, max=most)
    need = size + sum(map(len, work.before.values()))  # a new file becomes the old one by its name: it is there once
    with disk.reserved(work.files.space, need):
        work.journal.keep(work.key, changes, work.before)
        made: list[Change] = []
        try:
            for one in wanted:
                made.append(one.change)
                _make(work, one)
        except BaseException:
            _take_back(work, made)
            raise
    work.written_bytes = size
    return _told(work, tool, arguments, changes, wanted={one.change.path: one for one in wanted})


def take_back(work: Work) -> None:
    """Undo a call, if everything is still as it left it; else nothing is touched."""
    done = work.journal.read(work.key)
    if done is None:
        raise Impossible("what was before is no longer kept", code="undo_expired")
    foreign = [one.path for one in done if not work.files.state(one.path).same(one.post)]
    if foreign:
        raise Impossible(f"changed since by somebody else: {', '.join(foreign[:5])}", code="file_conflict")
    _take_back(work, done)
    work.journal.forget(work.key)


def _keep_configuration(work: Work, one: Wanted) -> None:
    """A `pyproject.toml` that configures everstep decides what tools may do, so no tool decides over it."""
    path = one.change.path
    if path.rpartition("/")[2].casefold() != "pyproject.toml":
        return
    if any(_configures(text.decode(errors="replace")) for text in (work.before.get(path, b""), one.data or b"")):
        raise Denied(f"'{path}' has a section [tool.everstep]; only people change that", code="policy_denied")


def _configures(text: str) -> bool:
    import tomllib  # hardly ever needed

    try:
        tools = tomllib.loads(text).get("tool")
    except tomllib.TOMLDecodeError:
        return "everstep" in text  # broken now, perhaps mended later
    return isinstance(tools, dict) and "everstep" in tools


def _of_ours(work: Work, one: Change) -> bool:
    now = work.files.state(one.path)
    return now.same(one.pre) or now.same(one.post)


def _make(work: Work, one: Wanted) -> None:
    path, post = one.change.path, one.change.post
    if one.change.moved_from is not None:
        work.files.rename(one.change.moved_from, path)
    elif one.data is not None:
        work.files.write(path, one.data, key=f"{work.key}:{path}", expected=Expected())
    elif post.kind == "folder":
        work.files.make_folder(path)
    elif post.kind == "absent":
        work.files.remove(path)


def _take_back(work: Work, done: Sequence[Change]) -> None:
    """In reverse; what is as it was already stays so."""
    for number, one in reversed([*enumerate(done)]):
        if work.files.state(one.path).same(one.pre):
            continue
        if one.moved_from is not None:
            work.files.rename(one.path, one.moved_from)
        elif one.pre.kind == "absent" and one.post.kind == "folder" and len(done) > 1:
            _remove_if_empty(work, one.path)
        elif one.pre.kind == "absent":
            work.files.remove(one.path)
        elif one.pre.kind == "folder":
            work.files.make_folder(one.path)
        else:
            work.files.put_back(one.path, work.journal.image(work.key, number), one.pre, key=f"{work.key}:{one.path}")


def _remove_if_empty(work: Work, path: str) -> None:
    """A folder that came along with a file goes with it, unless somebody else uses it by now."""
    if not work.files.names(path):
        work.files.remove(path)


# --- what each tool wants ---


def _with_folders(work: Work, wanted: list[Wanted]) -> list[Wanted]:
    """With the folders that are made on the way, so that they are taken back too."""
    known = {one.change.path for one in wanted}
    made: list[Wanted] = []
    for one in wanted:
        if one.change.pre.kind == "absent" and one.change.post.kind != "absent":
            for folder in _above(one.change.path):
                if folder not in known and work.files.state(folder).kind == "absent":
                    known.add(folder)
                    made.append(Wanted(change=Change(path=folder, pre=ABSENT, post=FileState(kind="folder"))))
    return [*made, *wanted]


def _above(path: str) -> list[str]:
    """The folders it lies in, the outermost first."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def _file(data: bytes) -> FileState:
    return FileState(kind="file", sha256=hashlib.sha256(data).hexdigest())


def _plan_write(work: Work, path: str, text: str = "", **more: Any) -> list[Wanted]:
    pre, condition = work.state(path), more.get("if")
    if condition == "absent" and pre.kind != "absent":
        raise Impossible(f"'{path}' exists already", code="file_conflict")
    if condition not in {None, "absent", pre.sha256}:
        raise Impossible(f"'{path}' is not as expected: its hash is {pre.sha256}", code="file_conflict")
    return [_put(path, pre, _content(work, text))]


def _plan_append(work: Work, path: str, text: str = "") -> list[Wanted]:
    pre = work.state(path)
    return [_put(path, pre, work.before.get(path, b"") + _content(work, text))]


def _content(work: Work, text: str) -> bytes:
    """What was brought along, else the text."""
    return text.encode() if work.brought is None else work.brought


def _plan_edit(work: Work, path: str, edits: list[dict[str, Any]]) -> list[Wanted]:
    pre = work.state(path)
    if pre.kind != "file":
        raise FileNotFoundError(2, "No such file", path)
    try:
        text = work.before[path].decode()
    except UnicodeDecodeError as error:
        raise Misconfigured(f"'{path}' is not UTF-8 text", code="file_not_text") from error
    for number, edit in enumerate(edits):
        count, wanted = text.count(edit["find"]), edit.get("count", 1)
        if count != wanted:
            what = f"'{edit['find'][:80]}' stands {count} times in '{path}', and {wanted} were expected (edit {number})"
            raise Impossible(what, code="file_conflict")
        text = text.replace(edit["find"], edit["replace"])
    return [_put(path, pre, text.encode())]


def _plan_copy(work: Work, *, to: str, overwrite: bool = False, **more: Any) -> list[Wanted]:
    source = more["from"]
    if work.brought is not None:
        return [_put(to, _free(work, to, overwrite=overwrite), work.brought)]
    if work.files.state(source).kind != "file":
        raise FileNotFoundError(2, "No such file", source)
    return [_put(to, _free(work, to, overwrite=overwrite), work.files.whole(source, BYTES_MAX))]


def _plan_move(work: Work, *, to: str, overwrite: bool = False, **more: Any) -> list[Wanted]:
    source = more["from"]
    pre = work.state(source)
    if pre.kind == "absent":
        raise FileNotFoundError(2, "No such file", source)
    if f"{to}/".startswith(f"{source}/"):
        raise Impossible(f"'{source}' cannot be moved into itself", code="os_conflict")
    if pre.kind == "folder":
        _free(work, to, overwrite=False)
        return [Wanted(change=Change(path=to, pre=ABSENT, post=FileState(kind="folder"), moved_from=source))]
    target = _put(to, _free(work, to, overwrite=overwrite), work.before[source])
    return [target, Wanted(change=Change(path=source, pre=pre, post=ABSENT))]


def _plan_mkdir(work: Work, path: str) -> list[Wanted]:
    pre = work.files.state(path)
    if pre.kind == "file":
        raise FileExistsError(17, "File exists", path)
    return [Wanted(change=Change(path=path, pre=pre, post=FileState(kind="folder")))]


def _plan_delete(work: Work, path: str, *, recursive: bool = False) -> list[Wanted]:
    pre = work.state(path)
    if pre.kind == "absent":
        return []
    inner: list[Wanted] = []
    if pre.kind == "folder":
        names = work.files.names(path)
        if names and not recursive:
            raise OSError(39, "Directory not empty", path)
        for name in names:
            inner += _plan_delete(work, f"{path}/{name}", recursive=True)
            if len(inner) > ENTRIES_MAX:
                raise Misconfigured(f"'{path}' holds more than {ENTRIES_MAX} entries", code="bad_argument")
    return [*inner, Wanted(change=Change(path=path, pre=pre, post=ABSENT))]


def _plan_apply(work: Work, ops: list[dict[str, Any]]) -> list[Wanted]:
    wanted: list[Wanted] = []
    for op in ops:
        arguments = {name: value for name, value in op.items() if name != "op"}
        wanted += PLANNERS[f"file.{op['op']}"](work, **arguments)
    return wanted


def _put(path: str, pre: FileState, data: bytes) -> Wanted:
    if pre.kind == "folder":
        raise FileExistsError(17, "It is a folder", path)
    return Wanted(change=Change(path=path, pre=pre, post=_file(data)), data=data)


def _free(work: Work, path: str, *, overwrite: bool) -> FileState:
    pre = work.state(path)
    if pre.kind == "folder" or (pre.kind != "absent" and not overwrite):
        raise FileExistsError(17, "It exists already", path)
    return pre


PLANNERS: Final[dict[str, Callable[..., list[Wanted]]]] = {
    "file.write": _plan_write,
    "file.append": _plan_append,
    "file.edit": _plan_edit,
    "file.copy": _plan_copy,
    "file.move": _plan_move,
    "file.mkdir": _plan_mkdir,
    "file.delete": _plan_delete,
    "file.apply": _plan_apply,
}


def _told(
    work: Work, tool: str, arguments: Arguments, done: Sequence[Change], *, wanted: dict[str, Wanted]
) -> JsonObject:
    """What the step gives out."""
    if tool == "file.apply":
        on_the_way = {folder for one in done for folder in _above(one.path)}
        return {"changed": [one.path for one in done if one.post.kind != "folder" or one.path not in on_the_way]}
    if tool == "file.delete":
        return {"path": arguments["path"], "deleted": len(done)}
    first = next(one for one in done if one.path == arguments.get("path", arguments.get("to")))
    if tool == "file.mkdir":
        return {"path": first.path, "created": first.pre.kind == "absent"}
    new = wanted.get(first.path)
    found = work.files.find(first.path)
    told: JsonObject = {
        "path": first.path,
        "bytes": 0 if found is None else found.st_size,
        "sha256": first.post.sha256,
    }
    if tool == "file.edit":
        import difflib

        old = work.before.get(first.path, b"").decode(errors="replace")
        now = (new.data if new is not None and new.data is not None else b"").decode(errors="replace")
        lines = difflib.unified_diff(old.splitlines(), now.splitlines(), "old", "new", lineterm="")
        return {**told, "diff": "\n".join(lines)}
    return {**told, "created": first.pre.kind == "absent"}
