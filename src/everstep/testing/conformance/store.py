"""`exercise_store`: what every answer to the Store port must do. Plain coroutines, so any runner can call them.

Each case gets a fresh rig. `CASES` is the suite as data: what is played, and which requirements that proves.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from everstep.domain.record import record
from everstep.testing.conformance import (
    store_breakers,
    store_commits,
    store_handed,
    store_history,
    store_keeping,
    store_keys,
    store_leases,
    store_lists,
    store_marks,
    store_rework,
    store_signals,
    store_traffic,
)
from everstep.testing.conformance.stage import Rig


@record
class Case:
    """One story, told on any store."""

    story: Callable[[Rig], Awaitable[None]]
    proves: tuple[str, ...] = ()


CASES: Final = (
    Case(story=store_lists.a_task_is_created_with_its_first_event, proves=("WF-8",)),
    Case(story=store_lists.the_same_key_is_the_same_task),
    Case(story=store_lists.an_id_is_given_once),
    Case(story=store_lists.lists_page_newest_first),
    Case(story=store_lists.lists_are_filtered, proves=("WF-8",)),
    Case(story=store_lists.tasks_are_found_by_name),
    Case(story=store_lists.all_journals_are_one_line),
    Case(story=store_lists.payloads_are_kept_by_content),
    Case(story=store_lists.a_long_plan_is_a_plan),
    Case(story=store_lists.figures_are_told),
    Case(story=store_lists.a_closed_store_says_so),
    Case(story=store_leases.claims_go_by_priority_then_age, proves=("WF-8",)),
    Case(story=store_leases.a_claim_is_a_lease, proves=("WF-8",)),
    Case(story=store_leases.nobody_claims_what_is_held),
    Case(story=store_leases.a_claim_may_name_tasks_and_pass_some_over),
    Case(story=store_leases.suspects_are_counted),
    Case(story=store_leases.cancelling_stays_cancelling),
    Case(story=store_leases.ended_and_paused_tasks_are_not_claimed),
    Case(story=store_leases.the_silent_are_dead_those_who_beat_are_not, proves=("WF-8", "WF-21")),
    Case(story=store_leases.nobody_finds_oneself_dead),
    Case(story=store_leases.tasks_of_strangers_are_dead),
    Case(story=store_leases.opening_again_finds_what_was_left, proves=("WF-21",)),
    Case(story=store_leases.due_tasks_come_in_their_time, proves=("WF-8",)),
    Case(story=store_leases.tasks_are_carried_in_one_way),
    Case(story=store_commits.outcome_and_next_intent_share_a_commit, proves=("WF-8",)),
    Case(story=store_commits.a_task_may_begin_where_it_is_created),
    Case(story=store_commits.what_is_returned_is_what_is_read),
    Case(story=store_handed.a_paused_task_is_taken_up_in_one_commit, proves=("FNDX-04",)),
    Case(story=store_handed.only_a_free_task_in_that_state_is_taken_up),
    Case(story=store_handed.a_generation_has_one_handle),
    Case(story=store_commits.every_stale_commit_is_refused),
    Case(story=store_commits.a_refused_unit_does_not_sink_the_batch),
    Case(story=store_commits.what_cannot_be_written_sinks_nobody_else),
    Case(story=store_commits.a_released_lease_is_gone),
    Case(story=store_commits.no_call_starts_unless_the_task_runs),
    Case(story=store_commits.a_command_comes_between),
    Case(story=store_commits.every_stale_command_is_refused),
    Case(story=store_commits.a_command_beside_a_holder_keeps_the_figures),
    Case(story=store_commits.a_sweep_twice_is_a_sweep_once, proves=("WF-14",)),
    Case(story=store_commits.a_sweep_of_what_was_written_since_is_refused),
    Case(story=store_commits.unknown_words_are_refused, proves=("WF-22",)),
    Case(story=store_commits.every_end_has_its_time, proves=("WF-21",)),
    Case(story=store_commits.pauses_follow_the_journal),
    Case(story=store_commits.pauses_run_out, proves=("4.4",)),
    Case(story=store_commits.no_update_is_lost, proves=("WF-10",)),
    Case(story=store_commits.events_are_bounded),
    Case(story=store_rework.a_task_may_begin_with_outcomes),
    Case(story=store_rework.a_task_and_a_line_elsewhere_are_written_together_or_not_at_all, proves=("X.9",)),
    Case(story=store_rework.a_step_makes_a_task_in_its_own_commit),
    Case(story=store_rework.a_reopened_task_is_queued_again),
    Case(story=store_rework.a_plan_is_not_revised_behind_its_holder),
    Case(story=store_rework.a_revised_plan_has_its_number_of_steps),
    Case(story=store_breakers.a_breaker_is_kept_with_what_it_learned, proves=("8.3",)),
    Case(story=store_breakers.a_stale_commit_teaches_nothing),
    Case(story=store_breakers.an_open_breaker_refuses_the_call_but_not_the_outcome),
    Case(story=store_breakers.one_probe_at_a_time, proves=("8.3",)),
    Case(story=store_breakers.a_permit_lapses_with_its_attempt),
    Case(story=store_breakers.a_permit_lapses_with_its_worker),
    Case(story=store_breakers.two_good_probes_close_it_and_nothing_is_kept),
    Case(story=store_breakers.a_reset_is_the_owners),
    Case(story=store_breakers.errors_are_found_by_what_they_are, proves=("8.1",)),
    Case(story=store_signals.a_signal_goes_to_everybody_who_listens),
    Case(story=store_signals.a_signal_waits_for_the_first_who_listens),
    Case(story=store_signals.the_same_id_is_the_same_signal),
    Case(story=store_signals.who_was_to_hear_it_still_is_after_a_restart),
    Case(story=store_signals.a_signal_that_was_not_heard_is_for_somebody_else),
    Case(story=store_signals.keys_and_owners_tell_signals_apart),
    Case(story=store_signals.old_signals_are_forgotten),
    Case(story=store_traffic.waiting_makes_up_for_priority),
    Case(story=store_traffic.who_waits_is_counted),
    Case(story=store_traffic.live_tasks_are_bounded),
    Case(story=store_traffic.words_follow_the_journal),
    Case(story=store_traffic.lists_go_by_open_pauses),
    Case(story=store_traffic.rates_are_shared_and_survive, proves=("7.5",)),
    Case(story=store_traffic.a_provider_can_ask_to_be_left_alone),
    Case(story=store_traffic.a_days_quota_is_counted_and_survives),
    Case(story=store_traffic.a_halt_refuses_claims_and_intents),
    Case(story=store_keeping.lists_go_in_every_order_page_by_page),
    Case(story=store_keeping.a_task_that_ended_can_go),
    Case(story=store_keeping.what_ended_long_ago_is_found),
    Case(story=store_keeping.payloads_go_with_the_last_task_that_names_them, proves=("R.6",)),
    Case(story=store_keeping.the_newest_line_of_all_keeps_its_number),
    Case(story=store_keeping.workers_are_remembered),
    Case(story=store_keys.credentials_are_found_by_their_digest),
    Case(story=store_keys.a_ticket_is_taken_once),
    Case(story=store_keys.what_is_made_with_a_token_goes_with_it),
    Case(story=store_keys.expired_credentials_are_forgotten),
    Case(story=store_marks.what_was_told_is_never_less, proves=("1.3",)),
    Case(story=store_marks.only_its_holder_says_how_far_a_call_is, proves=("4.3",)),
    Case(story=store_marks.of_all_who_would_make_a_call_one_begins_it),
    Case(story=store_marks.marks_go_with_their_task),
    Case(story=store_history.ends_are_gathered_from_the_journal),
    Case(story=store_history.calls_of_sized_tools_come_with_their_arguments),
    Case(story=store_history.answers_tell_how_long_somebody_was_waited_for),
    Case(story=store_history.calls_of_late_are_told_in_order),
    Case(story=store_history.tasks_are_counted_for_their_owner),
    Case(story=store_history.what_is_kept_is_kept_once),
    Case(story=store_history.the_journal_is_gathered_part_by_part),
    Case(story=store_history.history_is_the_owners),
    Case(story=store_history.old_hours_are_forgotten),
)


async def exercise_store(make_rig: Callable[[], Rig]) -> None:
    """The whole suite, one case after the other."""
    for case in CASES:
        await case.story(make_rig())
