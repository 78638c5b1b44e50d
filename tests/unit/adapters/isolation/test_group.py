"""Control groups of the version that this kernel may not have: the files of the other one, in a folder."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from everstep.adapters.isolation.group import Group, Roots, candidates, memory_group, new_group, works

V2 = "30 23 0:28 / {at} rw,relatime - cgroup2 cgroup2 rw\n"
PART = "30 23 0:28 /pod/one {at} rw,relatime - cgroup2 cgroup2 rw\n"


def written(place: Path, mounts: str, own: str) -> list[Roots]:
    (place / "mountinfo").write_text(mounts.format(at=place / "fs"))
    (place / "own").write_text(own)
    return list(candidates(place / "mountinfo", place / "own"))


@pytest.mark.parametrize(
    ("mounts", "own", "inner"),
    [(V2, "0::/user/me\n", "user/me"), (PART, "0::/pod/one/me\n", "me"), (PART, "0::/pod/one\n", "")],
)
def test_where_v2_groups_are_made(tmp_path: Path, mounts: str, own: str, inner: str) -> None:
    folder = tmp_path / "fs" / inner
    folder.mkdir(parents=True)
    (folder / "cgroup.subtree_control").write_text("")
    found = written(tmp_path, mounts, own)  # writing says what is wanted; here it is also what there is
    assert found == [] or found[0].folders["memory"] == folder
    assert (folder / "cgroup.subtree_control").read_text() == "+memory +cpu +pids"


def test_v2_without_controllers_is_none(tmp_path: Path) -> None:
    (tmp_path / "fs").mkdir()
    assert written(tmp_path, V2, "0::/\n") == []
    assert written(tmp_path, "", "") == []
    assert list(candidates(tmp_path / "no", tmp_path / "no")) == []


def test_v1_needs_all_of_them(tmp_path: Path) -> None:
    names = ("memory", "cpu,cpuacct", "pids", "freezer")
    lines = [f"3{n} 23 0:2{n} / /fs/{name} rw - cgroup cgroup rw,{name}\n" for n, name in enumerate(names)]
    own = "".join(f"{n}:{name}:/here\n" for n, name in enumerate(names))
    (roots,) = written(tmp_path, "".join(lines), own)
    assert (roots.version, roots.folders["cpuacct"]) == ("v1", Path("/fs/cpu,cpuacct/here"))
    assert written(tmp_path, "".join(lines[1:]), own) == []


def test_what_a_v2_group_says(tmp_path: Path) -> None:
    group = Group("v2", dict.fromkeys(("memory", "cpu", "pids", "freezer", "cpuacct"), tmp_path))
    group.limit(1_000, 5)
    group.throttle()
    assert (tmp_path / "memory.max").read_text() == "1000"
    assert (tmp_path / "memory.swap.max").read_text() == "0"
    assert (tmp_path / "pids.max").read_text() == "5"
    assert (tmp_path / "cpu.max").read_text() == "50000 100000"
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (tmp_path / "memory.stat").write_text("anon 700\nfile 200\nshmem 30\n")
    (tmp_path / "memory.peak").write_text("950\n")
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    (tmp_path / "pids.events").write_text("max 0\n")
    assert (group.cpu_s(), group.memory(), group.peak()) == (2.5, 730, 750)
    assert (group.memory_ran_out(), group.forks_refused()) == (True, False)
    group.kill()
    assert (tmp_path / "cgroup.kill").read_text() == "1"


def test_none_where_it_cannot_be_made(tmp_path: Path) -> None:
    roots = Roots(version="v2", folders=dict.fromkeys(("memory", "cpu", "pids"), tmp_path / "closed"))
    assert new_group(roots, 1, 1) is None
    assert not works(roots)
    assert new_group(None, 1, 1) is None


STEPS_ASIDE = """
import os, sys
from pathlib import Path
from everstep.adapters.isolation.group import step_aside
group = Path(sys.argv[1])
(group / "cgroup.procs").write_text(str(os.getpid()))
print(step_aside(group), (group / "cgroup.procs").read_text().split(), Path("/proc/self/cgroup").read_text())
"""


@pytest.fixture
def service() -> Iterator[Path]:
    """A group of v2 that was given to somebody; with controllers or without, its members can be moved."""
    mounts = (line.partition(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines())
    tops = [Path(before.split()[4]) for before, _, after in mounts if after.startswith("cgroup2 ")]
    if not tops or not os.access(tops[0], os.W_OK):
        pytest.skip("no control groups of v2 that we may make here")
    group = tops[0] / f"service-{os.getpid()}"
    group.mkdir()
    yield group
    for folder in (group / "everstep-home", group):
        with suppress(FileNotFoundError):
            folder.rmdir()


def test_who_is_alone_in_his_group_steps_aside(service: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-c", STEPS_ASIDE, str(service)], capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout.startswith("True [] "), said.stdout
    assert f"/{service.name}/everstep-home\n" in said.stdout


def test_a_stranger_is_not_moved(service: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (service / "cgroup.procs").write_text(str(stranger.pid))
        said = subprocess.run(
            [sys.executable, "-c", STEPS_ASIDE, str(service)], capture_output=True, text=True, check=True, timeout=60
        )
        assert said.stdout.startswith("False ["), said.stdout
        stranger.communicate(b"\n")


def test_who_has_stepped_aside_still_knows_his_group(tmp_path: Path) -> None:
    folder = tmp_path / "fs" / "svc"
    folder.mkdir(parents=True)
    (folder / "memory.max").write_text("1000")
    (folder / "memory.current").write_text("400")
    (folder / "memory.stat").write_text("inactive_file 0\n")
    (tmp_path / "mountinfo").write_text(V2.format(at=tmp_path / "fs"))
    (tmp_path / "own").write_text("0::/svc/everstep-home\n")
    assert memory_group(tmp_path / "mountinfo", tmp_path / "own") == folder
