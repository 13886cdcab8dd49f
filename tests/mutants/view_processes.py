"""Whole processes of groups that change: links over connections that come and go, who is suspected, and who is dialled."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

PROCESS_LINKS = "tests/views/test_process_links.py"
PROCESS = "tests/views/test_process.py"
LINKS = "tests/wire/test_links.py"
ANSWERS = "tests/views/test_answers.py"
CROSSING = "tests/views/test_crossing.py"
KEEPING = "tests/views/test_keeping.py"

OVER_CONNECTIONS = [
    Mutation(
        name="of two connections that are made at the same time, each side ends one",
        module="views/peers.py",
        right="ended = others if self.decides else others & self._passed_over",
        wrong="ended = others",
        tests=(
            f"{PROCESS_LINKS}::TestConnections::test_whoever_does_not_ends_none_because_the_other_may_be_chosen_yet",
            "tests/live/dynamic/test_changing.py::test_members_that_all_lost_each_other_in_the_same_moment_come_together_again",
        ),
    ),
    Mutation(
        name="what was sent to a process is sent to the one that takes its place",
        module="views/peers.py",
        right="        if theirs.life != self.life:\n",
        wrong="        if self.life is None:\n",
        tests=(f"{PROCESS}::TestJoining::test_a_process_that_is_started_again_takes_the_place_of_the_one_before",),
    ),
    Mutation(
        name="a choice of a connection that comes late is followed",
        module="views/peers.py",
        right=" and choice >= self._choice:",
        wrong=":",
        tests=(f"{CROSSING}::test_a_choice_that_comes_late_is_not_followed",),
    ),
    Mutation(
        name="a process that took the place of another must choose as often as that one before it is heard",
        module="views/peers.py",
        right="            self.spoilt = self._choice = 0\n",
        wrong="            self.spoilt = 0\n",
        tests=(f"{CROSSING}::test_a_process_that_took_the_place_of_another_counts_its_choices_anew",),
    ),
    Mutation(
        name="what was lost with a connection is not sent again",
        module="views/peers.py",
        right="[(connection, frame) for frame in self.outgoing.resume(received)]",
        wrong="[(connection, frame) for frame in list(self.outgoing.resume(received))[:0]]",
        tests=(
            f"{PROCESS_LINKS}::TestLinks::test_nothing_is_lost_or_changes_when_connections_break_and_lose_what_was_written",
        ),
    ),
    Mutation(
        name="a connection that is there is used, though the other side has made a new one",
        module="views/peers.py",
        right="        if self.decides:\n",
        wrong="        if self.decides and self.connection is None:\n",
        tests=(f"{PROCESS_LINKS}::TestLinks::test_a_connection_that_one_side_has_lost_is_replaced_before_the_other_notices",),
    ),
    Mutation(
        name="both sides decide which connection is used",
        module="views/peers.py",
        right="        if self.decides:\n",
        wrong="        if True:\n",
        tests=(f"{PROCESS_LINKS}::TestLinks::test_of_two_connections_that_cross_both_sides_keep_the_same_one",),
    ),
    Mutation(
        name="what is sent to a member that was never met is lost",
        module="views/peers.py",
        right="(self._ahead if self.is_ready else self._waiting).append(",
        wrong="(self._ahead if self.is_ready else []).append(",
        tests=(f"{PROCESS_LINKS}::TestLinks::test_what_is_sent_to_a_member_that_was_never_met_waits_for_it",),
    ),
    Mutation(
        name="what is on its way to a life is never for the one that takes its place",
        module="views/peers.py",
        right="for packet in (*self._ahead, *self._waiting) if packet.addressee]",
        wrong="for packet in self._waiting if packet.addressee]",
        tests=(
            f"{PROCESS_LINKS}::TestLinks::test_what_is_sent_to_a_new_incarnation_is_not_lost_with_the_life_that_still_seems_to_be_connected",
        ),
    ),
    Mutation(
        name="what is on its way to somebody is kept when it is no member any more",
        module="views/peers.py",
        right="                self.outgoing.abandon()\n",
        wrong="                pass\n",
        tests=(
            f"{PROCESS_LINKS}::TestLinks::test_nothing_is_kept_for_who_is_in_no_view_any_more_and_its_link_goes_on_all_the_same",
        ),
    ),
    Mutation(
        name="after something was abandoned a link goes on with the numbers that it had",
        module="wire/links.py",
        right="        if self._abandoned:\n",
        wrong="        if False:\n",
        tests=(f"{LINKS}::test_after_something_was_abandoned_a_link_goes_on_where_the_peer_is",),
    ),
    Mutation(
        name="what is said again and again is kept for somebody who is away",
        module="views/process.py",
        right="            if not repeated or peer.has_room():\n",
        wrong="            if True:\n",
        tests=(f"{PROCESS_LINKS}::TestLinks::test_nothing_is_kept_for_who_is_away_that_will_be_said_again",),
    ),
    Mutation(
        name="every message is answered by itself",
        module="views/process.py",
        right="hasty=self.hasty, more=True)",
        wrong="hasty=self.hasty)",
        tests=(f"{PROCESS_LINKS}::test_what_comes_together_is_answered_once",),
    ),
    Mutation(
        name="what waits for the end of a turn is not said then",
        module="views/process.py",
        right="        return self._done(now, self.member.end_turn(may_wait=may_wait))\n",
        wrong="        return self._done(now, [])\n",
        tests=(f"{PROCESS_LINKS}::test_what_comes_together_is_answered_once",),
    ),
    Mutation(
        name="whoever goes on after its own message answers the others before",
        module="views/member.py",
        right="core.operations.settled > settled and self.membership.ordering.owes()",
        wrong="core.operations.settled < settled and self.membership.ordering.owes()",
        tests=(f"{ANSWERS}::test_whoever_goes_on_after_its_own_message_answers_the_others_with_the_next",),
    ),
    Mutation(
        name="whoever has sent nothing waits before it answers",
        module="views/member.py",
        right="core.operations.settled > settled and self.membership.ordering.owes()",
        wrong="self.membership.ordering.owes()",
        tests=(f"{ANSWERS}::test_whoever_has_nothing_to_wait_for_answers_at_once",),
    ),
    Mutation(
        name="packets go to the senior members first",
        module="views/ordering.py",
        right="(*view.members[rank + 1 :], *view.members[:rank])",
        wrong="(*view.members[:rank], *view.members[rank + 1 :])",
        tests=(f"{ANSWERS}::test_the_members_that_follow_are_written_to_first",),
    ),
    Mutation(
        name="what can be delivered at the end of a turn is not",
        module="views/ordering.py",
        right="        if self._unsettled:\n            self.release()\n",
        wrong="",
        tests=(f"{ANSWERS}::test_whatever_is_sent_is_delivered_without_a_timer",),
    ),
    Mutation(
        name="what a member said of messages that it sent since is forgotten",
        module="views/knowledge.py",
        right="        if held[member] < sent:\n",
        wrong="        if False:\n",
        tests=(f"{ANSWERS}::test_a_member_holds_what_it_has_sent_whatever_it_said_before",),
    ),
    Mutation(
        name="what everybody has delivered is kept to be sent again",
        module="views/ordering.py",
        right="        self._core.operations.release(self.operation_before(self.rank, stable[self.rank]))\n",
        wrong="",
        tests=(f"{KEEPING}::test_what_every_member_has_delivered_is_not_kept_to_be_sent_again",),
    ),
    Mutation(
        name="what was delivered here is not kept to be sent again",
        module="views/ordering.py",
        right="self.operation_before(self.rank, stable[self.rank])",
        wrong="self.operation_before(self.rank, self.delivered[self.rank])",
        tests=(f"{KEEPING}::test_what_only_its_sender_has_delivered_is_kept_to_be_sent_again",),
    ),
    Mutation(
        name="what everybody has delivered is kept though it fills the window",
        module="views/unstable.py",
        right="0 if end - self._dropped[origin] > self._window else self._runs_left - 1",
        wrong="self._runs_left - 1",
        tests=(f"{KEEPING}::test_floor",),
    ),
    Mutation(
        name="what was delivered here is taken to be delivered by the others without an answer",
        module="protocols/single_phase/protocol.py",
        right="        return told < self._owed or bool(self._pending and",
        wrong="        return bool(self._pending and",
        tests=(f"{ANSWERS}::test_whatever_is_sent_is_delivered_without_a_timer",),
    ),
    Mutation(
        name="the first message that waits is not answered before it is delivered",
        module="protocols/single_phase/protocol.py",
        right="bool(self._pending and told < self._needed(*self._first_pending()))\n",
        wrong="False\n",
        tests=(f"{ANSWERS}::test_whatever_is_sent_is_delivered_without_a_timer",),
    ),
    Mutation(
        name="every message is answered at the end of its turn, whatever it waits for",
        module="views/ordering.py",
        right="        if packet is not None and self.protocol.is_awaited(self._said):\n",
        wrong="        if packet is not None:\n",
        tests=(f"{ANSWERS}::test_members_that_all_send_seldom_answer",),
    ),
    Mutation(
        name="that a message is held is not told when it is in order",
        module="views/holders.py",
        right="            self._untold.add(origin)\n",
        wrong="            pass\n",
        tests=(f"{ANSWERS}::test_whatever_is_sent_is_delivered_without_a_timer",),
    ),
    Mutation(
        name="that a message is held is told again when it is in order",
        module="views/holders.py",
        right=" and count > self._told[origin]:\n",
        wrong=":\n",
        tests=(f"{ANSWERS}::test_members_that_all_send_seldom_answer",),
    ),
    Mutation(
        name="whoever leaves waits for no more than a majority",
        module="views/previous_view.py",
        right="        return not is_told or not (value.terminal or after.is_quorum(self.installed, core.settings.tie))\n",
        wrong="        return not is_told if value.terminal else not after.is_quorum(self.installed, core.settings.tie)\n",
        tests=(f"{PROCESS}::TestEnding::test_whoever_leaves_waits_for_a_member_that_is_slow_too",),
    ),
    Mutation(
        name="nobody is told that little has arrived",
        module="views/process.py",
        right="        for peer in self.peers.values():\n            peer.acknowledge(out)\n",
        wrong="",
        tests=(f"{PROCESS_LINKS}::TestLinks::test_what_has_arrived_is_not_kept",),
    ),
    Mutation(
        name="a process that has ended takes the place of a later one that is not connected",
        module="views/peers.py",
        right="        return self._doubts[theirs.life] <= _DOUBTS_MAX\n",
        wrong="        return False\n",
        tests=(f"{PROCESS_LINKS}::TestLives::test_an_introduction_that_comes_late_changes_nothing",),
    ),
    Mutation(
        name="a process takes the place of one that was started later",
        module="views/process.py",
        right="        if peer is not None and peer.is_older(theirs):\n",
        wrong="        if False:\n",
        tests=(f"{PROCESS}::TestJoining::test_an_older_process_of_a_name_does_not_replace_the_one_that_is_there",),
    ),
    Mutation(
        name="whoever joins learns of nobody but those whom it knows",
        module="views/directory.py",
        right="                self.addresses[name] = address\n",
        wrong="",
        tests=(f"{PROCESS}::TestJoining::test_whoever_knows_one_member_learns_of_all",),
    ),
    Mutation(
        name="whoever is not connected with all members asks to be one",
        module="views/catching_up.py",
        right="        self._is_near = is_near and core.can_reach(packet.members)\n",
        wrong="        self._is_near = is_near\n",
        tests=(f"{PROCESS}::TestSuspicion::test_whoever_one_member_cannot_hear_is_not_taken_in_again_before_that_can",),
    ),
    Mutation(
        name="a ballot does not ask whoever comes while it waits",
        module="views/member.py",
        right="            self.membership.agreement.ask_again(name)\n",
        wrong="            pass\n",
        tests=(f"{PROCESS}::TestFounding::test_a_founder_that_comes_later_is_asked_at_once",),
    ),
]

SUSPICION = [
    Mutation(
        name="nobody looks whether a process is still there when its connection ends",
        module="views/process.py",
        right="        if refused:\n",
        wrong="        if False:\n",
        tests=(f"{PROCESS}::TestSuspicion::test_a_process_that_was_killed_is_missed_within_milliseconds",),
    ),
    Mutation(
        name="a majority that has promised waits for nobody else",
        module="views/member.py",
        right="(is_complete or campaign.age > patience)",
        wrong="(is_complete or campaign.age > 1)",
        tests=(f"{PROCESS}::TestSuspicion::test_a_member_that_is_slow_is_not_left_out_because_somebody_joins",),
    ),
    Mutation(
        name="whoever has promised to another begins a ballot of its own as soon as anybody",
        module="views/member.py",
        right="core.settings.promise_patience * under_way:",
        wrong="core.settings.promise_patience * (under_way and False):",
        tests=(f"{PROCESS}::TestSuspicion::test_a_member_that_is_slow_is_not_left_out_because_somebody_joins",),
    ),
    Mutation(
        name="silence counts while this process was stopped itself",
        module="views/liveness.py",
        right="            peer.heard_at = min(now, peer.heard_at + late_s)\n",
        wrong="            pass\n",
        tests=(f"{PROCESS}::TestSuspicion::test_all_processes_that_were_stopped_together_suspect_nobody",),
    ),
    Mutation(
        name="founders that have not come yet are waited for no longer than others",
        module="views/liveness.py",
        right="            waits = founding and peer.life is None\n",
        wrong="            waits = False\n",
        tests=(f"{PROCESS}::TestFounding::test_the_others_are_waited_for_as_long_when_the_majority_comes_together_late",),
    ),
    Mutation(
        name="whoever is suspected stays so, though it is heard again",
        module="views/liveness.py",
        right="""        self.absolve(peer.name, "silent", "gone")\n""",
        wrong="",
        tests=(f"{PROCESS}::TestSuspicion::test_a_member_that_was_suspected_and_is_heard_again_is_not_excluded",),
    ),
    Mutation(
        name="a member that holds everybody up is never suspected",
        module="views/liveness.py",
        right="        slow = member.waits_for() if now - self._moved_at >= self._timing.stall_s else set()\n",
        wrong="        slow: set[str] = set()\n",
        tests=(
            f"{PROCESS}::TestSuspicion::test_a_member_whose_application_takes_nothing_holds_the_others_up_for_a_while_only",
        ),
    ),
    Mutation(
        name="whoever sends what cannot be read is trusted all the same",
        module="views/process.py",
        right="        if peer.spoilt >= _SPOILT_MAX:\n",
        wrong="        if False:\n",
        tests=(f"{PROCESS_LINKS}::TestLinks::test_whoever_sends_what_cannot_be_read_again_and_again_is_suspected",),
    ),
]

ENDING = [
    Mutation(
        name="whoever promised while the group was closing has forgotten that after a restart",
        module="views/agreement.py",
        right="self._core.save(Promised(ballot, self._core.closing))",
        wrong="self._core.save(Promised(ballot))",
        tests=(
            f"{PROCESS}::TestEnding::test_whoever_said_that_it_has_nothing_more_to_send_takes_nothing_more_after_a_restart",
        ),
    ),
]

MUTATIONS = [*OVER_CONNECTIONS, *SUSPICION, *ENDING]
