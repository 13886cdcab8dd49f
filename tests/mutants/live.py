"""Live groups: links that survive their connections, packets for which there is no room, and how a group ends."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

LINKS = "tests/wire/test_links.py"
LARGE = "tests/live/test_large.py"
CLOSING = "tests/live/test_closing.py"
IN_MEMORY = "tests/live/test_services_in_memory.py"
INTAKE = "tests/live/test_intake.py"
LIVENESS = "tests/live/test_liveness.py"
UNREAD = "tests/live/test_unread.py"
TRANSPORTS = "tests/live/test_transports.py"

LOSSES = "tests/live/test_losses.py"
CHAOS = "tests/faults/test_chaos.py"
ABSENCES = "tests/live/test_absences.py"

MUTATIONS = [
    Mutation(
        name="a node that is restarted does not say which process was there before it",
        module="live/services/disk.py",
        right="return {} if self._before is None else {process: self._before}",
        wrong="return {}",
        tests=("tests/live/test_node_disk.py::test_a_process_knows_the_one_before_it_also_when_the_journal_began_anew",),
    ),
    Mutation(
        name="a journal of a node that begins anew forgets who writes it",
        module="live/services/disk.py",
        right="head = [*(self._as_entry(Save(record)) for record in self._own()), *head]",
        wrong="head = [self._as_entry(Save(_Clock(self.clock))), *head]",
        tests=("tests/live/test_node_disk.py::test_a_process_knows_the_one_before_it_also_when_the_journal_began_anew",),
    ),
    Mutation(
        name="a sequencer that was cut off blames its clients for it",
        module="live/services/surviving/absences.py",
        right="now - max(at, self._excused_at) > self._timeout_s",
        wrong="now - at > self._timeout_s",
        tests=(f"{ABSENCES}::test_a_sequencer_that_was_cut_off_or_stopped_gives_everybody_time_to_come",),
    ),
    Mutation(
        name="a client that was sent away is suspected only once",
        module="live/services/surviving/absences.py",
        right="return sorted({*late, *ended, *self._sent_away})",
        wrong="return sorted({*late, *ended})",
        tests=(f"{ABSENCES}::test_a_client_that_was_sent_away_is_suspected_until_it_is_evicted",),
    ),
    Mutation(
        name="sequencers do not find their register in the journal when all were lost at once",
        module="live/services/surviving/joining.py",
        right='order="total", journal=journal, network=own',
        wrong='order="total", journal=None, network=own',
        tests=(f"{CHAOS}::test_groups_without_backups_outlive_all_sequencers_whose_registers_are_in_journals",),
    ),
    Mutation(
        name="a run does not tell who took over from a sequencer that was killed",
        module="live/runs/faulty_service.py",
        right="if found.epoch > self._epochs.get(found.unit, -1):",
        wrong="if found.unit not in self._epochs:",
        tests=("tests/faults/test_run.py::test_clients_of_sequencers_go_on_when_these_are_killed_stopped_and_restarted",),
    ),
    Mutation(
        name="a silent client of sequencers with backups is sent away before it is evicted",
        module="live/services/visiting.py",
        right="if self.waits_for_visitors and isinstance(error, MemberUnreachable):",
        wrong="if False and isinstance(error, MemberUnreachable):",
        tests=("tests/live/test_surviving.py::test_clients_stay_in_their_groups_when_a_sequencer_was_cut_off_and_is_back",),
    ),
    Mutation(
        name="who leaves right after the start is not believed before it",
        module="live/network/failure_notices.py",
        right="(verdict.started and self._is_needed(peer))",
        wrong="(verdict.started and False)",
        tests=(f"{LOSSES}::test_a_member_that_leaves_right_after_the_start_is_believed_by_those_for_whom_it_has_not_started",),
    ),
    Mutation(
        name="a frame that came before is taken again",
        module="wire/links.py",
        right="        return number == self.received\n",
        wrong="        return number <= self.received\n",
        tests=(f"{LINKS}::test_a_gap_is_refused_and_a_repetition_dropped",),
    ),
    Mutation(
        name="one frame may be missing",
        module="wire/links.py",
        right="if number > self.received:",
        wrong="if number > self.received + 2:",
        tests=(f"{LINKS}::test_a_gap_is_refused_and_a_repetition_dropped",),
    ),
    Mutation(
        name="a new connection brings again what the peer has",
        module="wire/links.py",
        right="""\
        self.acknowledged(received)
        return tuple(self._unacknowledged)
""",
        wrong="""\
        return tuple(self._unacknowledged)
""",
        tests=(f"{LINKS}::test_what_the_peer_has_is_not_sent_again_on_a_new_connection",),
    ),
    Mutation(
        name="a long payload has arrived when its last frame is next",
        module="wire/links.py",
        right="if value[1] >= received}",
        wrong="if value[1] > received}",
        tests=(f"{LINKS}::test_a_long_payload_is_on_its_way_until_the_last_frame_of_it_has_arrived",),
    ),
    Mutation(
        name="what the sender was told of counts again",
        module="wire/links.py",
        right="""\
        self._acknowledged = self.received
        self._bytes = 0
""",
        wrong="""\
        self._acknowledged = self.received
""",
        tests=(f"{LINKS}::test_the_sender_is_told_after_so_many_frames_or_bytes",),
    ),
    Mutation(
        name="each piece of a packet takes the place of those before",
        module="wire/links.py",
        right="if complete and self.pieces:",
        wrong="if self.pieces:",
        tests=(f"{LARGE}::test_a_packet_is_put_together_from_its_pieces_and_from_nothing_else",),
    ),
    Mutation(
        name="a group waits for a member that is away",
        module="live/network/closing.py",
        right="all(peer.away or self._has_all_of(peer, delivered) for peer in peers)",
        wrong="all(self._has_all_of(peer, delivered) for peer in peers)",
        tests=(f"{CLOSING}::test_who_has_not_said_how_much_it_sent_is_waited_for_unless_it_is_away",),
    ),
    Mutation(
        name="nothing more comes through a member as soon as it sends no more itself",
        module="live/network/closing.py",
        right="if not peer.sent_drained and all(self._peers[one].drained for one in self._before[peer.member]):",
        wrong="if not peer.sent_drained:",
        tests=(f"{CLOSING}::test_who_passes_messages_on_is_drained_towards_one_when_it_is_from_all_others",),
    ),
    Mutation(
        name="who has delivered everything says so for those behind it too",
        module="live/network/closing.py",
        right="if not peer.sent_done and all(self._peers[one].done for one in self._before[peer.member]):",
        wrong="if not peer.sent_done:",
        tests=(f"{CLOSING}::test_who_passes_messages_on_says_for_all_behind_it_that_they_are_done",),
    ),
    Mutation(
        name="a member goes before it has told everybody that it is done",
        module="live/network/closing.py",
        right="(peer.done and peer.sent_done)",
        wrong="peer.done",
        tests=(f"{CLOSING}::test_who_passes_messages_on_says_for_all_behind_it_that_they_are_done",),
    ),
    Mutation(
        name="a link goes on although nothing is to be read at all",
        module="live/network/intake.py",
        right="peer.connection is not None and not self.paused:",
        wrong="peer.connection is not None:",
        tests=(f"{INTAKE}::test_where_nothing_is_to_be_read_at_all_no_link_goes_on_by_itself",),
    ),
    Mutation(
        name="packets are taken although there is no room where they go on to",
        module="live/network/intake.py",
        right="if not self._may_go_on(peer):",
        wrong="if False:",
        tests=(f"{INTAKE}::test_a_link_waits_while_there_is_no_room_where_its_packets_go_on_to",),
    ),
    Mutation(
        name="a link brings more although there is no room for what it brought",
        module="live/network/intake.py",
        right="""\
            if peer.connection is not None:
                peer.connection.pause()
""",
        wrong="",
        tests=(f"{INTAKE}::test_a_link_waits_until_there_is_room_for_what_it_brings_and_no_longer",),
    ),
    Mutation(
        name="who has never been there is lost after the timeout",
        module="live/network/liveness.py",
        right="if silent_s > self._timeout_s and not peer.done and self.started:",
        wrong="if silent_s > self._timeout_s and not peer.done:",
        tests=(f"{TRANSPORTS}::test_a_member_that_never_comes_is_awaited_for_join_s_of_virtual_time",),
    ),
    Mutation(
        name="time in which this process did not run counts as the silence of others",
        module="live/network/liveness.py",
        right="                self._forgive(absent_s, now)\n",
        wrong="                pass\n",
        tests=(f"{LIVENESS}::test_time_in_which_this_process_did_not_run_is_nobodys_silence",),
    ),
    Mutation(
        name="who is not listened to is silent",
        module="live/network/liveness.py",
        right="peer.connection is not None and peer.connection.is_paused():",
        wrong="False:",
        tests=(f"{LIVENESS}::test_who_is_not_listened_to_is_not_silent",),
    ),
    Mutation(
        name="there is room again although too many bytes are unread",
        module="live/inbox.py",
        right=" and self.bytes <= self._bytes_max * 15 // 16",
        wrong="",
        tests=(f"{UNREAD}::test_an_inbox_has_room_again_when_a_sixteenth_is_free_of_messages_and_of_bytes[0-20]",),
    ),
    Mutation(
        name="others may hear of what a process does before it is recorded",
        module="live/services/nodes.py",
        right="                if isinstance(before, Notice):\n",
        wrong="                if False:\n",
        tests=("tests/live/test_nodes.py::test_what_a_node_tells_is_on_disk_before_others_can_hear_of_it",),
    ),
    Mutation(
        name="who has nothing more to do waits for others only as long as the timeout",
        module="live/services/nodes.py",
        right="                deadline = clock.now() + patience_s\n            elif",
        wrong="                pass\n            if",
        tests=(f"{IN_MEMORY}::test_a_client_of_a_store_may_leave_long_before_the_others",),
    ),
    Mutation(
        name="a member that others closed the group for has finished",
        module="live/runs/fixed_member.py",
        right="not error and not self._has_everything",
        wrong="not error and self._stop.is_set()",
        tests=(
            "tests/live/test_stopping.py::"
            "test_a_member_with_which_others_close_the_group_says_as_they_do_that_not_everything_was_sent",
        ),
    ),
]
