"""Live groups whose members change: who may come in, who founds, whose commands are whose, and what a journal begins with."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

FOUNDING = "tests/live/dynamic/test_founding.py"
STATES = "tests/live/dynamic/test_states.py"
SECURITY = "tests/live/dynamic/test_security.py"
SHORT = "tests/views/test_short_journals.py"
WRITING = "tests/views/test_writing.py"
SENDING = "tests/live/dynamic/test_sending.py"

MUTATIONS = [
    Mutation(
        name="messages are taken without looking after the group has failed",
        module="live/dynamic/submitting.py",
        right="        self.end_turn()\n        self.awaited.fail(why)",
        wrong="        self.awaited.fail(why)",
        tests=(f"{SENDING}::test_a_message_is_refused_from_the_moment_on_when_the_group_ends_here[fails]",),
    ),
    Mutation(
        name="messages that were sent by a call each come after those that were sent together later",
        module="live/dynamic/submitting.py",
        right="        self._gather()\n        first = self.accepted + 1",
        wrong="        first = self.accepted + 1",
        tests=(f"{SENDING}::test_however_messages_are_sent_they_keep_their_order_and_numbers[memory]",),
    ),
    Mutation(
        name="there is always room for messages that are sent by a call each",
        module="live/dynamic/submitting.py",
        right="self.room = 0 if self.is_full() else SINGLES_MAX - len(self._singles)",
        wrong="self.room = UNSETTLED_MESSAGES_MAX",
        tests=(f"{SENDING}::test_whoever_sends_without_a_pause_lets_others_run",),
    ),
    Mutation(
        name="those that read go on before whoever waited for its own message",
        module="live/dynamic/group.py",
        right="            self._inbox.put(each, run.count, run.payload_bytes())\n",
        wrong="            self.hand_over(each, run.count, run.payload_bytes())\n",
        tests=(f"{SENDING}::test_whoever_waited_for_its_own_message_goes_on_before_those_that_read",),
    ),
    Mutation(
        name="a message that is sent by a call of its own is taken for a command",
        module="live/dynamic/group.py",
        right="settings.network.run_bytes_max if kept.machine is None else NO_SINGLES",
        wrong="settings.network.run_bytes_max",
        tests=(f"{SENDING}::test_messages_between_commands_stay_messages",),
    ),
    Mutation(
        name="a certificate lets in whoever shows it",
        module="live/dynamic/connection.py",
        right="if self._settings.certificate_name(theirs.name) not in names:",
        wrong="if not names:",
        tests=(f"{SECURITY}::test_a_certificate_lets_in_only_whom_it_names",),
    ),
    Mutation(
        name="founders without journals do not wait for all",
        module="live/dynamic/joining.py",
        right="found_together=journal is None,",
        wrong="found_together=False,",
        tests=(
            f"{FOUNDING}::test_without_journals_founders_wait_for_all_because_none_can_know_that_it_was_not_started_before",
        ),
    ),
    Mutation(
        name="founders that part do not wait for those who come a moment later",
        module="live/dynamic/mismatch.py",
        right="while self._mismatch and self._untold:",
        wrong="while False:",
        tests=(f"{FOUNDING}::test_a_founder_learns_of_a_misfit_between_two_others[ab-protocol-memory]",),
    ),
    Mutation(
        name="who is told that founders do not fit together waits on",
        module="live/dynamic/mismatch.py",
        right="or (reported and not self._settings.founds):",
        wrong="or reported:",
        tests=(f"{FOUNDING}::test_a_founder_that_cannot_see_the_misfit_itself_believes_another_and_says_who_told_it",),
    ),
    Mutation(
        name="anybody with other settings keeps founders from beginning",
        module="live/dynamic/joining.py",
        right="return certain and (not self.founds or name in self.addresses)",
        wrong="return certain",
        tests=(f"{FOUNDING}::test_a_stranger_with_other_settings_does_not_keep_founders_from_beginning",),
    ),
    Mutation(
        name="nobody says that a caller is gone",
        module="live/dynamic/replica.py",
        right="        if view.senior == self._node.settings.me:\n",
        wrong='        if view.senior == "":\n',
        tests=(f"{STATES}::test_who_holds_a_lock_and_is_gone_holds_it_no_more",),
    ),
    Mutation(
        name="a short journal forgets what was not executed yet",
        module="views/restarting.py",
        right="            found.submitted = list(record.operations)\n",
        wrong="            found.submitted = []\n",
        tests=(f"{SHORT}::test_operations_that_nobody_has_executed_yet_survive_in_a_short_journal",),
    ),
    Mutation(
        name="a short journal forgets what was held",
        module="views/restarting.py",
        right="_begin_view(found, record.delivered, record.runs)",
        wrong="_begin_view(found, record.delivered, ())",
        tests=(f"{SHORT}::test_what_is_held_and_not_delivered_survives_in_a_short_journal",),
    ),
    Mutation(
        name="a short journal forgets how much of the view was delivered",
        module="views/restarting.py",
        right="_begin_view(found, record.delivered, record.runs)",
        wrong="_begin_view(found, record.held, record.runs)",
        tests=(f"{WRITING}::test_deliveries_after_a_checkpoint_are_those_of_the_runs_that_it_kept",),
    ),
    Mutation(
        name="a run that was sent is read without the messages that were submitted",
        module="views/restarting.py",
        right="            _hold(found, _with_messages(record.data, found))\n",
        wrong="            _hold(found, record.data)\n",
        tests=(f"{WRITING}::test_everything_that_was_written_once_is_there_after_a_restart",),
    ),
    Mutation(
        name="a part of a run is taken for its beginning",
        module="views/restarting.py",
        right="    run = data.run.part(first - data.run.first, record.end - data.run.first)\n",
        wrong="    run = data.run.part(0, record.end - first)\n",
        tests=(f"{WRITING}::test_a_run_that_was_delivered_in_parts_is_there_after_a_restart",),
    ),
    Mutation(
        name="every delivery costs a sync of the disk",
        module="views/ordering.py",
        right="core.note(Delivered(origin, end))",
        wrong="core.save(Delivered(origin, end))",
        tests=(f"{WRITING}::test_a_delivery_waits_for_the_next_sync_or_the_timer",),
    ),
    Mutation(
        name="what was delivered is never synced by itself",
        module="views/member.py",
        right="core.names)\n        core.want_sync()\n",
        wrong="core.names)\n",
        tests=(f"{WRITING}::test_a_delivery_waits_for_the_next_sync_or_the_timer",),
    ),
    Mutation(
        name="a window that is full waits for the timer to have deliveries synced",
        module="views/ordering.py",
        right="            self._core.want_sync()\n",
        wrong="            pass\n",
        tests=(f"{WRITING}::test_a_full_window_opens_without_the_timer_where_nothing_is_synced_unasked",),
    ),
]
