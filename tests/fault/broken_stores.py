"""Broken stores that one engine alone never meets: the store suite says so, in the name of the story that fails."""

from tests.fault.mutants import Edit, Mutant, PowerLoss, Retold


def _story(name: str) -> Retold:
    return Retold((name,))


BROKEN_STORES = (
    Mutant(
        "a half-open breaker lets two through",
        (
            Edit(
                "domain/breaker.py",
                "BreakerState.HALF_OPEN if breaker.permit is not None and holder_lives",
                "BreakerState.HALF_OPEN if breaker.permit is not None and not holder_lives",
            ),
        ),
        _story("one_probe_at_a_time"),
        "one_probe_at_a_time",
    ),
    Mutant(
        "a sweep by id alone",
        (
            Edit(
                "adapters/stores/sql/apply.py",
                "(guard.status, guard.epoch, guard.worker) != (sweep.status, sweep.epoch, sweep.worker):",
                "not guard:",
            ),
            Edit("adapters/stores/sql/apply.py", "if sweep.last_seq not in (None, guard.last_seq):", "if not guard:"),
        ),
        _story("a_sweep_twice_is_a_sweep_once"),
        "a_sweep_twice_is_a_sweep_once",
    ),
    Mutant(
        "a sweep of what was written since",
        (Edit("adapters/stores/sql/apply.py", "if sweep.last_seq not in (None, guard.last_seq):", "if not guard:"),),
        _story("a_sweep_of_what_was_written_since_is_refused"),
        "a_sweep_of_what_was_written_since_is_refused",
    ),
    Mutant(
        "renewal ignores the fence",
        (
            Edit(
                "adapters/stores/sqlite/queries.sql",
                "UPDATE workers SET heartbeat_at = :at WHERE id = :id AND fenced_at IS NULL AND released_at IS NULL;",
                "UPDATE workers SET heartbeat_at = :at, fenced_at = NULL WHERE id = :id;",
            ),
        ),
        _story("the_silent_are_dead_those_who_beat_are_not"),
        "the_silent_are_dead_those_who_beat_are_not",
    ),
    Mutant(
        "own tasks are recovered",
        (
            Edit(
                "adapters/stores/sql/queries.sql",
                "WHERE t.worker IS NOT NULL AND t.worker != :me AND",
                "WHERE t.worker IS NOT NULL AND :me = :me AND",
            ),
        ),
        _story("nobody_finds_oneself_dead"),
        "nobody_finds_oneself_dead",
    ),
    Mutant(
        "no tombstone",
        (Edit("adapters/stores/sql/queries.sql", "AND key = ? AND until > ?;", "AND key = ? AND until < ?;"),),
        _story("a_task_that_ended_can_go"),
        "a_task_that_ended_can_go",
    ),
    Mutant(
        "the journal moved, and nobody looks",
        (
            Edit(
                "adapters/stores/sql/apply.py",
                "return guard.last_seq == commit.last_seq and guard.epoch == lease.epoch",
                "return guard.epoch == lease.epoch",
            ),
        ),
        _story("every_stale_commit_is_refused"),
        "every_stale_commit_is_refused",
    ),
    Mutant(
        "a released lease stays",
        (
            Edit(
                "adapters/stores/sql/apply.py",
                "        worker = None if self.commit.release else guard.worker\n",
                "        worker = guard.worker\n",
            ),
        ),
        _story("a_released_lease_is_gone"),
        "a_released_lease_is_gone",
    ),
    Mutant(
        "a halt stops claims only",
        (
            Edit(
                "adapters/stores/sqlite/bulk.py",
                "not unit.stands(guard) or (commit.proposals and desk.halted):",
                "not unit.stands(guard):",
            ),
        ),
        _story("a_halt_refuses_claims_and_intents"),
        "a_halt_refuses_claims_and_intents",
    ),
    Mutant(
        "the quota is not counted",
        (
            Edit(
                "adapters/stores/sql/apply.py",
                "        if task.live_max is not None:\n",
                "        if not task.live_max:\n",
            ),
        ),
        _story("live_tasks_are_bounded"),
        "live_tasks_are_bounded",
    ),
    Mutant(
        "a key may name two tasks",
        (Edit("adapters/stores/sql/apply.py", "            return KeyTaken(task=known)\n", "            continue\n"),),
        _story("the_same_key_is_the_same_task"),
        "the_same_key_is_the_same_task",
    ),
    Mutant(
        "flushed now and then only",
        (
            Edit("adapters/stores/sqlite/queries.sql", "PRAGMA synchronous = FULL;", "PRAGMA synchronous = NORMAL;"),
            Edit("adapters/stores/sqlite/connect.py", '{"power": 2, "process": 1}', '{"power": 1, "process": 1}'),
        ),
        PowerLoss(),
        "C1",
    ),
)
