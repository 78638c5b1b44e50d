"""Engines that are broken on purpose: if the checker passes one of them, the checker is what is broken.

A mutant is text in a file of the product and what stands there instead. It is applied to a copy; text that is no
longer there is a failure, so the list follows the code.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from everstep.torture.trial import EverstepSubject, Plot, Report, trial
from everstep.torture.workload import Workload

SOURCE = Path(__file__).parents[2] / "src"
LEASE_LOSS = (str(Path(__file__).with_name("lease_loss.py")),)


@dataclass(frozen=True)
class Edit:
    """One text of one file, and what stands there instead."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Scene:
    """A small trial in which a broken engine shows."""

    workload: Workload = Workload(steps=6)
    failpoints: tuple[str, ...] = ()
    program: tuple[str, ...] = ("-m", "everstep.torture.child")

    def play(self, folder: Path, source: Path = SOURCE) -> Report:
        plot = Plot(failpoints=self.failpoints, patience_s=10)
        return trial(folder, self.workload, plot, EverstepSubject(source, self.program))


@dataclass(frozen=True)
class Mutant:
    """What is broken, how, where it shows, and which check must say so."""

    name: str
    edits: tuple[Edit, ...]
    scene: Scene
    check: str

    def make(self, folder: Path) -> Path:
        """The broken copy."""
        source = folder / "src"
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        for edit in self.edits:
            path = source / "everstep" / edit.file
            text = path.read_text(encoding="utf-8")
            assert text.count(edit.old) == 1, f"{edit.file} has {text.count(edit.old)} times: {edit.old}"
            path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
        return source


CLEAN = Scene()
PAUSES = Scene(Workload(steps=12, pauses=6, call_s=0.02))
IN_A_CALL = Scene(Workload(steps=4, once_share=0.0), failpoints=("call.execute.after:2=sigkill",))
IN_A_CALL_MADE_ONCE = Scene(Workload(steps=4, once_share=1.0), failpoints=("call.execute.after:2=sigkill",))
LEASE_LOST = Scene(Workload(steps=4, once_share=0.0, call_s=0.05, pauses=2), program=LEASE_LOSS)
APPROVALS = Scene(Workload(steps=4, once_share=0.5, approvals=0.5))
APPROVALS_KILLED = Scene(
    Workload(steps=3, once_share=0.0, approvals=1.0),
    failpoints=("call.execute.after=sigkill", "command.commit.after=sigkill"),
)
ORDERED_AGAIN = Scene(Workload(steps=2, once_share=1.0, approvals=0.5, fails=True))
SILENCE = Scene(Workload(steps=3, once_share=0.0, approvals=1.0, silent=True))
SCENES = {
    "approvals": APPROVALS,
    "killed around approvals": APPROVALS_KILLED,
    "ordered again after an approval": ORDERED_AGAIN,
    "approved by silence": SILENCE,
    "clean": CLEAN,
    "pauses": PAUSES,
    "killed in a call": IN_A_CALL,
    "killed in a `once` call": IN_A_CALL_MADE_ONCE,
    "lease lost in a call": LEASE_LOST,
}

MUTANTS = (
    Mutant(
        "told before it is durable",
        (
            Edit(
                "adapters/stores/sql/store.py",
                "        answers = self._hold.writes.submit([unit_of(commit) for commit in commits])\n",
                "        import asyncio\n"
                "        units = [apply.StepUnit(commit) for commit in commits]\n"
                "        for unit in units:\n"
                "            unit.write()\n"
                "        self._late = asyncio.ensure_future(self._hold.writes.submit(units))\n"
                "        answers = asyncio.sleep(0, [unit.answer for unit in units])\n",
            ),
        ),
        CLEAN,
        "C3",
    ),
    Mutant(
        "published before it is durable",
        (
            Edit(
                "engine/commit.py",
                "            (result,) = await kit.store.commit_steps((_unit(held, drafts, lap),))\n",
                "            from everstep.adapters.stores.journal import commit_steps\n"
                "            import asyncio\n"
                "            kit.feed.publish(commit_steps(_unit(held, drafts, lap)).events)\n"
                "            await asyncio.sleep(0.001)\n"
                "            (result,) = await kit.store.commit_steps((_unit(held, drafts, lap),))\n",
            ),
        ),
        CLEAN,
        "C1",
    ),
    Mutant(
        "no epoch guard",
        (
            Edit(
                "adapters/stores/sql/apply.py",
                "guard.last_seq == commit.last_seq and guard.epoch == lease.epoch and guard.worker == lease.worker",
                "guard.last_seq == commit.last_seq and bool(lease)",
            ),
            Edit(
                "engine/commit.py",
                "        if (result.epoch, result.worker) != (held.lease.epoch, held.lease.worker):\n",
                "        if not held.lease:\n",
            ),
            Edit(
                "engine/commit.py",
                "    if state is None or (state.epoch, state.worker) != (held.lease.epoch, held.lease.worker):\n",
                "    if state is None:\n",
            ),
        ),
        LEASE_LOST,
        "C4",
    ),
    Mutant(
        "the intent is lost",
        (
            Edit(
                "adapters/stores/sql/desk.py",
                "            rows.append((num, event.seq,",
                "            event.type == 'attempt.started' or rows.append((num, event.seq,",
            ),
        ),
        CLEAN,
        "C3",
    ),
    Mutant(
        "seq with gaps",
        (
            Edit(
                "adapters/stores/journal.py",
                "    seq = commit.last_seq + len(events)\n",
                "    seq = commit.last_seq + len(events) + 1\n",
            ),
        ),
        CLEAN,
        "C6",
    ),
    Mutant(
        "`once` as `pure`",
        (
            Edit(
                "domain/effects.py",
                "    if effect.repeatable:\n",
                "    if effect.repeatable or effect is Effect.ONCE:\n",
            ),
        ),
        IN_A_CALL_MADE_ONCE,
        "C10",
    ),
    Mutant(
        "a new key on a crash repeat",
        (
            Edit(
                "engine/propose.py",
                "idempotency_key(lap.state.id, step.path, step.tries)",
                "idempotency_key(lap.state.id, step.path, step.attempts)",
            ),
        ),
        IN_A_CALL,
        "C10",
    ),
    Mutant(
        "an outcome is not remembered",
        (
            Edit(
                "domain/moves.py",
                "    move_step(state, step, to)\n    if step.attempt is not None:\n",
                "    if step.attempts > 1:\n        move_step(state, step, to)\n    if step.attempt is not None:\n",
            ),
        ),
        CLEAN,
        "C2",
    ),
    Mutant(
        "a pause does not stop the intent",
        (
            Edit(
                "engine/advance.py",
                "    if state.status is TaskStatus.PAUSING or state.held_back:\n        finish.stand_still(lap)\n"
                "    if state.status is TaskStatus.RUNNING and not state.held_back and not kit.closing and",
                "    if not kit.closing and",
            ),
            Edit(
                "adapters/stores/journal.py",
                "GRANTING: Final = frozenset({TaskStatus.RUNNING, TaskStatus.CANCELLING})",
                "GRANTING: Final = frozenset(TaskStatus)",
            ),
        ),
        PAUSES,
        "C8",
    ),
    Mutant(
        "a gated call is not asked about",
        (
            Edit(
                "engine/propose.py",
                "    if wired.spec.approve is not None or",
                "    if",
            ),
        ),
        APPROVALS,
        "C9",
    ),
    Mutant(
        "the intent does not name its grant",
        (Edit("wire/event.py", "            proposal.approval,\n", "            None,\n"),),
        APPROVALS,
        "C9",
    ),
    Mutant(
        "a grant is used again",
        (
            Edit(
                "domain/fold_pauses.py",
                "        step.grant = step.given = None\n        step.spent = step.approval\n",
                "",
            ),
        ),
        ORDERED_AGAIN,
        "C9",
    ),
    Mutant(
        "recovery without a new epoch",
        (Edit("engine/recover.py", "        epoch=Epoch(dead.epoch + 1),\n", "        epoch=dead.epoch,\n"),),
        IN_A_CALL,
        "C4",
    ),
    Mutant(
        "a row that is not the fold",
        (Edit("domain/task.py", "        state.done,\n", "        state.done + 1,\n"),),
        CLEAN,
        "C5",
    ),
    Mutant(
        "an interrupted call counts as never made",
        (
            Edit(
                "domain/decide.py",
                "        effect_state=EffectState.UNKNOWN,\n        called=True,\n",
                "        effect_state=EffectState.UNKNOWN,\n        called=False,\n",
            ),
        ),
        IN_A_CALL,
        "C3",
    ),
    Mutant(
        "subscribers miss events",
        (
            Edit("engine/feed.py", "subscription.push(mine)\n", "subscription.push(mine[:1])\n"),
            Edit(
                "facade/desk.py",
                "                    if fresh and fresh[0].seq != last + 1:\n                        break\n",
                "",
            ),
        ),
        CLEAN,
        "C7",
    ),
)
