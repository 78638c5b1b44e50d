"""One file to fleet: the demos on a file, and on a PostgreSQL with workers, leave the same journals."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from everstep.demos.folder import DemoFolder
from everstep.demos.scenario import Words, prepare, scenario
from everstep.demos.stage import Child, Stage
from tests.postgres import schema

PACE = 0.1
WORKERS = 2
NAMES = os.environ.get("EVERSTEP_TEST_DEMOS", "research").split(",")
"""Of the demos; the long suite names all three."""
Journals = list[dict[str, list[Any]]]
"""Of all tasks, the oldest first, step by step."""
MASKS = (
    (re.compile(r"\b[a-z]{1,3}_[0-9a-z]{26}\b"), "ID"),
    (re.compile(r"\b[0-9a-f]{40,64}\b"), "DIGEST"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST"),
)
"""Ids, digests (of what holds ids, times and ports) and times are not the same twice."""
DIFFERS = frozenset(
    {"at", "seq", "duration_s", "work_s", "elapsed_ms", "usage", "bytes", "worker", "pid", "epoch", "workspace"}
)
"""So are durations, the sizes of what tells them, who carried it, and where the
store is; the order is compared step by step."""

NOTHING: dict[str, list[Any]] = {}
TURNS = frozenset({"step.started", "step.waiting"})
"""Whether a call has to wait for its turn among those of its host is a matter of when it asks."""


def shown(value: Any, folder: str) -> Any:
    """A value without what may differ."""
    if isinstance(value, dict):
        return {key: shown(one, folder) for key, one in value.items() if key not in DIFFERS}
    if isinstance(value, list):
        return [shown(one, folder) for one in value]
    if isinstance(value, str):
        value = value.replace(folder, "FOLDER")
        for pattern, word in MASKS:
            value = pattern.sub(word, value)
    return value


def journals(folder: Path) -> Journals:
    """As anybody can read them."""

    def ask(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "everstep", *words], cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    found: Journals = []
    for task in json.loads(ask("ls", "--all", "--json"))["items"][::-1]:
        by_step: dict[str, list[Any]] = {}
        for event in map(json.loads, ask("show", task["id"], "--events").splitlines()):
            if event["type"] not in TURNS:
                by_step.setdefault(event["step"] or "", []).append(shown(event, str(folder)))
        found.append(by_step)
    return found


def play(name: str, folder: Path, stage: type[Stage]) -> Journals:
    chosen, project = scenario(name), DemoFolder(folder)
    prepare(chosen, project)
    performance = stage(chosen, project, pace=PACE, say=lambda _: None, quiet=True).play(kill=False)
    assert performance.passed
    return journals(folder)


def differences(file: Journals, fleet: Journals) -> Iterator[str]:
    """Event by event: a whole journal would hide the one word that is not the same."""
    for number, (left, right) in enumerate(zip_longest(file, fleet, fillvalue=NOTHING)):
        for step in sorted({*left, *right}):
            for one, other in zip_longest(left.get(step, []), right.get(step, [])):
                if one != other:
                    yield f"task {number}, step {step or '-'}\n  on a file:  {one}\n  on a fleet: {other}"


class Fleet(Stage):
    """Workers are there beside whoever gives the commands: they go on with a task before anybody asks for it again."""

    def _start(self, words: Words, *, hidden: bool = False) -> Child:
        again, self._begun = getattr(self, "_begun", False), True
        return super()._start(["watch", "@last"] if again else words, hidden=hidden)

    @contextmanager
    def _rig(self) -> Iterator[None]:
        with super()._rig(), workers(self._folder.path):
            yield


@contextmanager
def workers(folder: Path) -> Iterator[None]:
    how = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    command = [sys.executable, "-m", "everstep", "worker", "--json"]
    crew = [subprocess.Popen(command, **how) for _ in range(WORKERS)]  # type: ignore[call-overload]
    try:
        yield
    finally:
        for one in crew:
            os.killpg(one.pid, signal.SIGTERM)
        for one in crew:
            one.wait(60)


@pytest.mark.long
@pytest.mark.req("X.2")
@pytest.mark.parametrize("name", NAMES)
def test_the_same_journal_on_a_file_and_on_a_fleet(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_file = play(name, tmp_path / "file", Stage)
    with schema() as url:
        monkeypatch.setenv("EVERSTEP_STORE", url)
        on_a_fleet = play(name, tmp_path / "fleet", Fleet)
    found = "\n".join(differences(on_a_file, on_a_fleet))
    assert not found, found
