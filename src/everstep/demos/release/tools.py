"""The tools of this scenario: three commands of git, each with the effect it really has."""

import asyncio
from pathlib import Path
from typing import TypedDict

from everstep import Ctx, Impossible, tool
from everstep.ports.function import ProbeAnswer
from everstep.ports.tool import Call


class Tree(TypedDict):
    """How a repository stands."""

    branch: str
    clean: bool


class Change(TypedDict):
    """What differs."""

    patch: str
    files: list[str]


class Tag(TypedDict):
    """A name for a commit."""

    name: str
    commit: str


@tool.pure("git.status", title="State of a repository")
async def status(repo: str, require_clean: bool = False, *, ctx: Ctx) -> Tree:  # noqa: FBT001, FBT002 -- an argument of the tool
    """The branch, and whether something is uncommitted."""
    folder = ctx.workdir / repo
    _, branch = await git(folder, "branch", "--show-current")
    _, changed = await git(folder, "status", "--porcelain")
    if changed and require_clean:
        raise Impossible(f"uncommitted: {changed.splitlines()[0].strip()}", what_to_do="commit it, or put it away")
    return {"branch": branch, "clean": not changed}


@tool.pure("git.diff", title="Changes of a repository")
async def diff(repo: str, base: str = "HEAD", *, ctx: Ctx) -> Change:
    """What differs from a commit."""
    folder = ctx.workdir / repo
    _, patch = await git(folder, "diff", base)
    _, names = await git(folder, "diff", "--name-only", base)
    return {"patch": patch, "files": names.split()}


async def tagged(call: Call) -> ProbeAnswer:
    """Whether the tag is there: then a call that was cut off has happened."""
    name = str(call.arguments["name"])
    code, commit = await git(Path(str(call.arguments["repo"])), "rev-list", "-1", f"refs/tags/{name}")
    return ("done", {"name": name, "commit": commit}) if code == 0 else "not_done"


@tool("git.tag", title="Tag a commit", effect="verifiable", probe=tagged)
async def tag(repo: str, name: str, message: str, *, ctx: Ctx) -> Tag:
    """Commit what there is under a tag."""
    folder = ctx.workdir / repo
    await git(folder, "commit", "-qam", message)
    code, said = await git(folder, "tag", "-a", name, "-m", message)
    if code:
        raise Impossible(said)
    _, commit = await git(folder, "rev-list", "-1", f"refs/tags/{name}")
    return {"name": name, "commit": commit}


async def git(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code, and what it said."""
    process = await asyncio.create_subprocess_exec(
        "git", "-C", str(folder), *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode().strip()
