"""Broken engines that a trial of one task shows: the checker, or the ledger, says so."""

from tests.fault.mutants import (
    APPROVALS,
    CLEAN,
    FULL_FOR_A_MOMENT,
    IN_A_CALL,
    IN_A_CALL_MADE_ONCE,
    LEASE_LOST,
    NOT_YET_CALLED,
    ORDERED_AGAIN,
    PAUSES,
    Edit,
    Mutant,
)

BROKEN_ENGINES = (
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
                "    if not is_held(state, held.lease):\n",
                "    if state is None:\n",
            ),
        ),
        LEASE_LOST,
        "C2",
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
        (Edit("engine/stall.py", "        epoch=Epoch(dead.epoch + 1),\n", "        epoch=dead.epoch,\n"),),
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
                "        effect_state=EffectState.NONE if lost.safe else EffectState.UNKNOWN,\n        called=True,\n",
                "        effect_state=EffectState.NONE if lost.safe else EffectState.UNKNOWN,\n        called=False,\n",
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
    Mutant(
        "uncertain `once` calls are repeated without asking",
        (Edit("domain/effects.py", "OnUncertain.ASK: Resolution.ASK,", "OnUncertain.ASK: Resolution.CALL_AGAIN,"),),
        IN_A_CALL_MADE_ONCE,
        "C10",
    ),
    Mutant(
        "a look that saw nothing counts as done",
        (Edit("domain/effects.py", '"not_done": Resolution.CALL_AGAIN', '"not_done": Resolution.DONE'),),
        NOT_YET_CALLED,
        "C14",
    ),
    Mutant(
        "a claim keeps the old epoch",
        (
            Edit(
                "adapters/stores/journal.py",
                "epoch=Epoch(epoch + 1), worker=asked.worker",
                "epoch=epoch, worker=asked.worker",
            ),
            Edit(
                "adapters/stores/sql/queries.sql", "SET status = ?, epoch = epoch + 1, worker", "SET status = ?, worker"
            ),
        ),
        IN_A_CALL,
        "C4",
    ),
    Mutant(
        "the key of a task is forgotten",
        (
            Edit(
                "adapters/stores/sql/apply.py",
                "return (num, task.id, task.owner, task.key, *said",
                "return (num, task.id, task.owner, None, *said",
            ),
        ),
        IN_A_CALL,
        "C11",
    ),
    Mutant(
        "a full disk is swallowed",
        (
            Edit(
                "adapters/stores/sqlite/ledger.py",
                "            self._undo(desk)\n            if isinstance(error, apsw.Error):\n",
                "            self._undo(desk)\n            return [getattr(unit, 'answer', None) for unit in units]\n"
                "            if isinstance(error, apsw.Error):\n",
            ),
        ),
        FULL_FOR_A_MOMENT,
        "C3",
    ),
    Mutant(
        "pauses are not listed",
        (
            Edit(
                "adapters/stores/sql/desk.py",
                '                    self.change("close_pause", (status, pause_id, num))\n',
                "                    pass\n",
            ),
        ),
        APPROVALS,
        "C5",
    ),
    Mutant(
        "the end of a task has no time",
        (
            Edit(
                "domain/moves.py",
                "    state.ended_at = at\n    state.budget",
                "    state.ended_at = state.created_at\n    state.budget",
            ),
        ),
        CLEAN,
        "C5",
    ),
    Mutant(
        "an approval is not written down",
        (
            Edit(
                "engine/control.py",
                "        if not drafts:\n            return state\n",
                "        if not drafts or pause:\n            return state\n",
            ),
        ),
        APPROVALS,
        "C1",
    ),
)
