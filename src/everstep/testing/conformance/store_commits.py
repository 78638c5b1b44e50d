"""Commits, commands and sweeps: guards, dense order, and who wins."""

import asyncio
from dataclasses import replace

from everstep.domain import events as e
from everstep.domain.errors import LimitExceeded, Validation
from everstep.domain.events import Draft
from everstep.domain.fold import fold
from everstep.domain.ids import Epoch, PauseId, Seq, TaskId
from everstep.domain.pauses import PauseStatus
from everstep.domain.states import StepStatus, TaskStatus
from everstep.domain.task import Command, StepCommit, TaskState, row_of
from everstep.ports.store import Committed, Created, PauseFilter, Stale
from everstep.testing.conformance import facts as f
from everstep.testing.conformance.facts import ONE, THREE, TWO
from everstep.testing.conformance.stage import Rig, Scene, done, raises, refused, scene
from everstep.wire.event import decode

SUBMITTERS = 20
UPDATES = 500


async def outcome_and_next_intent_share_a_commit(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        first = done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        assert [(intent.step, intent.attempt.epoch) for intent in first.intents] == [(ONE, state.epoch)]
        assert (first.last_seq, [event.type for event in first.events]) == (3, ["attempt.started"])
        state = await on.load(state.id)
        assert state.in_flight == (ONE,)
        commit = f.step_commit(state, f.completed(ONE, {"n": 1}), proposals=(f.proposal(TWO),))
        second = done(await on.commit(commit))
        assert [event.type for event in second.events] == ["step.completed", "attempt.started"]
        state = await on.load(state.id)
        assert state.steps[ONE].status is StepStatus.COMPLETED
        assert state.steps[ONE].output == f.CODEC.seal({"n": 1})
        assert (state.in_flight, state.seq, state.done) == ((TWO,), 5, 1)
        assert await on.seqs(state.id) == [1, 2, 3, 4, 5]


async def a_task_may_begin_where_it_is_created(rig: Rig) -> None:
    async with scene(rig) as on:
        new = f.new_task(key="k")
        state = fold(None, "local", f.first_event(new))
        fold(state, "local", f.started_event(state, on.me))
        first = f.step_commit(state, proposals=(f.proposal(ONE),))
        (created,) = await on.store.create_tasks((replace(new, first=first),))
        assert isinstance(created, Created)
        assert created.committed is not None
        assert [event.type for event in created.events] == ["task.created", "task.started", "attempt.started"]
        assert [intent.step for intent in created.committed.intents] == [ONE]
        read = await on.load(new.id)
        assert (read.status, read.epoch, read.worker, read.seq) == (TaskStatus.RUNNING, 1, on.me.id, 3)
        assert await on.claim() == []
        (again,) = await on.store.create_tasks((replace(f.new_task(key="k"), first=first),))
        assert again == Created(task=new.id, new=False)
        assert await on.seqs(new.id) == [1, 2, 3]


async def what_is_returned_is_what_is_read(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        committed = done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        assert tuple(await on.store.read_events(state.id, Seq(2), 10)) == committed.events
        assert [event.seq for event in await on.store.read_events(state.id, Seq(0), 2)] == [1, 2]
        assert await on.store.read_events(state.id, Seq(3), 10) == []
        assert await on.store.read_events(f.task_id(), Seq(0), 10) == []
        again: TaskState | None = None
        for event in await on.store.read_events(state.id, Seq(0), 10):
            again = fold(again, "local", decode(event.encoded))
        assert again == await on.load(state.id)


async def every_stale_commit_is_refused(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        lease = (await on.load(state.id)).worker
        good = f.step_commit(state, f.note("x"))
        stale: list[StepCommit] = [
            replace(good, lease=replace(good.lease, epoch=Epoch(good.lease.epoch - 1))),
            replace(good, lease=replace(good.lease, epoch=Epoch(good.lease.epoch + 1))),
            replace(good, lease=replace(good.lease, worker=f.worker().id)),
            replace(good, last_seq=Seq(good.last_seq - 1)),
            replace(good, last_seq=Seq(good.last_seq + 1)),
        ]
        for commit in stale:
            seen = refused(await on.commit(commit))
            assert seen == Stale(
                status=TaskStatus.RUNNING, epoch=good.lease.epoch, worker=lease, last_seq=good.last_seq
            )
        nobody = replace(good, lease=replace(good.lease, task=f.task_id()))
        assert refused(await on.commit(nobody)).epoch == 0
        assert await on.seqs(state.id) == [1, 2]
        done(await on.commit(good))
        assert refused(await on.commit(good)).last_seq == good.last_seq + 1


async def a_refused_unit_does_not_sink_the_batch(rig: Rig) -> None:
    async with scene(rig) as on:
        states = [await on.held() for _ in range(3)]
        commits = [f.step_commit(state, proposals=(f.proposal(ONE),)) for state in states]
        commits[1] = replace(commits[1], last_seq=Seq(7))
        kinds = [type(answer) for answer in await on.store.commit_steps(commits)]
        assert kinds == [Committed, Stale, Committed]
        assert [(await on.load(state.id)).in_flight for state in states] == [(ONE,), (), (ONE,)]


async def what_cannot_be_written_sinks_nobody_else(rig: Rig) -> None:
    """Half a surrogate pair, as the name of a file that is no text brings it: no JSON can say it."""
    half = f.note("report \udcff.pdf")
    async with scene(rig) as on:
        good, bad, seen = [await on.held() for _ in range(3)]
        answers = await asyncio.gather(
            on.commit(f.step_commit(good, proposals=(f.proposal(ONE),))),
            on.commit(f.step_commit(bad, half, proposals=(f.proposal(ONE),))),
            on.command(f.command(await on.load(seen.id), half)),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [Committed, Validation, Validation]
        assert [(await on.load(state.id)).in_flight for state in (good, bad, seen)] == [(ONE,), (), ()]


async def a_released_lease_is_gone(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        late = f.step_commit(await on.load(state.id), f.note("late"))
        _, opened, told = f.paused()
        done(await on.commit(f.step_commit(state, opened, told)))
        seen = refused(await on.commit(late))
        assert (seen.status, seen.worker) == (TaskStatus.PAUSED, None)
        assert await on.claim() == []


async def no_call_starts_unless_the_task_runs(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        _, opened, told = f.paused()
        commit = f.step_commit(state, opened, told, proposals=(f.proposal(ONE),))
        answer = done(await on.commit(commit))
        assert (answer.intents, answer.refused) == ((), commit.proposals)
        assert (await on.load(state.id)).open == {}


async def a_command_comes_between(rig: Rig) -> None:
    async with scene(rig) as on:
        held = await on.held()
        commit = f.step_commit(await on.load(held.id), proposals=(f.proposal(ONE),))
        seen = await on.load(held.id)
        name, opened, _ = f.paused()
        pausing = Draft(body=e.TaskPausing(pause=name, mode="graceful", mode_used="graceful", waits_for=()))
        answer = done(await on.command(f.command(seen, opened, pausing)))
        assert [event.type for event in answer.events] == ["pause.opened", "task.pausing"]
        stale = refused(await on.commit(commit))
        assert (stale.status, stale.epoch, stale.worker) == (TaskStatus.PAUSING, held.epoch, held.worker)
        state = await on.load(held.id)
        assert (state.status, state.worker, state.seq) == (TaskStatus.PAUSING, on.me.id, 4)
        told = Draft(body=e.TaskPaused(pause=name, reason_type=state.pauses[name].type))
        done(await on.commit(f.step_commit(state, told)))


async def every_stale_command_is_refused(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        name, opened, told = f.paused()
        done(await on.commit(f.step_commit(state, opened, told)))
        paused = await on.load(state.id)
        answered = Draft(body=e.PauseAnswered(pause=name, answer="resume"))
        resumed = Draft(body=e.TaskResumed(pause=name, to=TaskStatus.QUEUED))
        good = f.command(paused, answered, resumed, pause=name, guarded=True)
        assert good.last_seq is not None
        stale: list[Command] = [
            replace(good, status=TaskStatus.RUNNING),
            replace(good, generation=2),
            replace(good, pause=f.pause_id()),
            replace(good, last_seq=Seq(good.last_seq - 1)),
        ]
        for command in stale:
            assert refused(await on.command(command)).last_seq == good.last_seq
        assert refused(await on.command(replace(good, task=f.task_id()))).epoch == 0
        done(await on.command(good))
        refused(await on.command(good))
        assert (await on.load(state.id)).status is TaskStatus.QUEUED


async def a_command_beside_a_holder_keeps_the_figures(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE), f.proposal(TWO)))))
        holder = await on.load(state.id)
        done(await on.commit(f.step_commit(holder, f.completed(ONE))))
        seen = await on.load(state.id)
        name, opened, _ = f.paused(THREE)
        skipped = Draft(body=e.StepSkipped(reason=e.SkipReason.REQUESTED), step=THREE)
        done(await on.command(f.command(seen, opened)))
        seen = await on.load(state.id)
        answered = Draft(body=e.PauseAnswered(pause=name, answer="skip"), step=THREE)
        done(await on.command(f.command(seen, answered, skipped, pause=name)))
        assert (await on.load(state.id)).done == 2
        await on.sound()


async def a_sweep_twice_is_a_sweep_once(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        late = f.step_commit(await on.load(state.id), f.note("late"))
        first, second = f.sweep(await on.load(state.id)), f.sweep(await on.load(state.id))
        answers = await on.store.sweep((first, second))
        assert [type(answer) for answer in answers] == [Committed, Stale]
        swept = await on.load(state.id)
        assert (swept.status, swept.worker, swept.recoveries) == (TaskStatus.STALLED, None, 1)
        assert swept.epoch == state.epoch + 1
        assert refused(await on.commit(late)).epoch == swept.epoch
        (again,) = await on.claim()
        assert again.lease.epoch == swept.epoch + 1
        types = [event.type for event in await on.store.read_events(state.id, Seq(0), 10)]
        assert types == ["task.created", "task.started", "task.recovered", "task.started"]


async def a_sweep_of_what_was_written_since_is_refused(rig: Rig) -> None:
    """Who is taken for dead may have recorded an outcome in between: what was decided without it is void."""
    async with scene(rig) as on:
        state = await on.held()
        read = await on.load(state.id)
        sweep = replace(f.sweep(read), last_seq=state.seq)
        done(await on.commit(f.step_commit(state, proposals=(f.proposal(ONE),))))
        refused(await on.sweep(sweep))
        again = await on.load(state.id)
        done(await on.sweep(replace(f.sweep(await on.load(state.id)), last_seq=again.seq)))


async def unknown_words_are_refused(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        commit = f.step_commit(state, f.note("x"))
        bad = replace(commit, row=f.with_status(commit.row, "dreaming"))
        await raises(Validation, on.commit(bad))
        seen = await on.load(state.id)
        command = f.command(seen, f.note("x"))
        await raises(Validation, on.command(replace(command, row=f.with_status(command.row, "dreaming"))))
        sweep = f.sweep(await on.load(state.id))
        await raises(Validation, on.sweep(replace(sweep, row=f.with_status(sweep.row, "dreaming"))))
        assert await on.seqs(state.id) == [1, 2]


async def every_end_has_its_time(rig: Rig) -> None:
    async with scene(rig) as on:
        for status in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED):
            state = await on.held()
            commit = f.step_commit(state, f.note("x"))
            endless = replace(commit.row, status=status, ended_at=None)
            await raises(Validation, on.commit(replace(commit, row=endless)))
        state = await on.held()
        done(await on.commit(f.step_commit(state, f.finished(), at=f.later(5))))
        ended = await on.load(state.id)
        assert (ended.status, ended.ended_at, ended.worker) == (TaskStatus.COMPLETED, f.later(5), None)


async def pauses_follow_the_journal(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        names: list[PauseId] = []
        for second, step in enumerate((ONE, TWO, None)):
            name, opened, _ = f.paused(step)
            names.append(name)
            done(await on.commit(f.step_commit(await on.load(state.id), opened, at=f.later(second))))
        kept = await on.store.list_pauses(PauseFilter(task=state.id))
        assert [one.pause.id for one in kept] == names
        assert [one.opened_at for one in kept] == [f.later(0), f.later(1), f.later(2)]
        assert kept[0].pause == (await on.load(state.id)).pauses[names[0]]
        assert [one.pause.id for one in await on.store.list_pauses(PauseFilter(id=names[1]))] == [names[1]]
        assert await on.store.list_pauses(PauseFilter(owner="somebody")) == []
        withdrawn = Draft(body=e.PauseWithdrawn(pause=names[0], why="not needed"), step=ONE)
        answered = Draft(body=e.PauseAnswered(pause=names[1], answer="skip"), step=TWO)
        skipped = Draft(body=e.StepSkipped(reason=e.SkipReason.REQUESTED), step=TWO)
        done(await on.commit(f.step_commit(await on.load(state.id), withdrawn, answered, skipped)))
        assert [one.pause.id for one in await on.store.list_pauses(PauseFilter())] == [names[2]]
        done(await on.commit(f.step_commit(await on.load(state.id), f.finished())))
        closed = await on.store.list_pauses(PauseFilter(task=state.id, status=None))
        assert [one.status for one in closed] == [PauseStatus.WITHDRAWN, PauseStatus.ANSWERED, PauseStatus.WITHDRAWN]
        newest = await on.store.list_pauses(PauseFilter(status=PauseStatus.WITHDRAWN, newest=True))
        assert [one.pause.id for one in newest] == [names[2], names[0]]


async def pauses_run_out(rig: Rig) -> None:
    """What runs out is listed by when somebody has to look: to warn, then to act; never again once it is closed."""
    async with scene(rig) as on:
        state = await on.held()
        names: list[PauseId] = []
        for step, expires_at in ((ONE, f.later(1000)), (TWO, f.later(500)), (THREE, None)):
            name, opened, _ = f.paused(step)
            assert isinstance(opened.body, e.PauseOpened)
            then = None if expires_at is None else "reject"
            pause = replace(opened.body.pause, expires_at=expires_at, on_timeout=then)
            names.append(name)
            timed = Draft(body=e.PauseOpened(pause=pause), step=step)
            done(await on.commit(f.step_commit(await on.load(state.id), timed, at=f.later(0))))
        listed = await on.store.list_pauses(PauseFilter(timed=True))
        assert [(one.pause.id, one.due_at) for one in listed] == [(names[1], f.later(450)), (names[0], f.later(900))]
        warned = Draft(body=e.PauseExpiring(pause=names[1], expires_at=f.later(2000), on_timeout="reject"), step=TWO)
        done(await on.command(f.command(await on.load(state.id), warned)))
        listed = await on.store.list_pauses(PauseFilter(task=state.id, timed=True))
        assert [(one.pause.id, one.due_at) for one in listed] == [(names[0], f.later(900)), (names[1], f.later(2000))]
        assert listed[1].pause.expires_at == f.later(2000)
        expired = Draft(body=e.PauseExpired(pause=names[0], action="reject"), step=ONE)
        skipped = Draft(body=e.StepSkipped(reason=e.SkipReason.REQUESTED), step=ONE)
        done(await on.command(f.command(await on.load(state.id), expired, skipped)))
        assert [one.pause.id for one in await on.store.list_pauses(PauseFilter(timed=True))] == [names[1]]
        (closed,) = await on.store.list_pauses(PauseFilter(id=names[0], status=None))
        assert closed.status is PauseStatus.EXPIRED


async def no_update_is_lost(rig: Rig) -> None:
    """20 submitters, 500 updates each, all on one task: queued by the store, never refused for a lock."""
    async with scene(rig) as on:
        state = await on.held()
        status, row = state.status, row_of(state)

        async def submit(name: int) -> None:
            for number in range(UPDATES):
                answer = await on.command(
                    Command(
                        task=state.id,
                        status=status,
                        generation=1,
                        pause=None,
                        actor=f.HUMAN,
                        at=f.NOW,
                        drafts=(f.note(f"{name}.{number}"),),
                        row=row,
                    )
                )
                assert isinstance(answer, Committed)

        await asyncio.gather(*(submit(name) for name in range(SUBMITTERS)))
        assert await on.seqs(state.id) == list(range(1, SUBMITTERS * UPDATES + 3))
        await _all_are_there(on, state.id)


async def _all_are_there(on: Scene, task: TaskId) -> None:
    said = set()
    for event in await on.store.read_events(task, Seq(2), SUBMITTERS * UPDATES):
        body = decode(event.encoded).body
        assert isinstance(body, e.Unknown)
        said.add(body.data["text"])
    assert len(said) == SUBMITTERS * UPDATES


async def events_are_bounded(rig: Rig) -> None:
    async with scene(rig) as on:
        state = await on.held()
        await raises(LimitExceeded, on.commit(f.step_commit(state, f.note("x" * 70_000))))
        seen = await on.load(state.id)
        await raises(LimitExceeded, on.command(f.command(seen, f.note("x" * 70_000))))
        assert await on.seqs(state.id) == [1, 2]
