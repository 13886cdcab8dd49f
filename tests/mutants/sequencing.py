"""The sequencing service: what clients hold back, what sequencers keep, and what the directory enters."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

RULES = "tests/sequencing/test_rules.py"
GOLDEN = "tests/sequencing/test_golden.py"
BODIES = "tests/sequencing/test_bodies.py"
CLIENT = "tests/sequencing/test_client.py"
HOSTILE = "tests/sequencing/test_hostile.py"
SWARM = "tests/sequencing/test_swarm.py::test_no_run_of_a_swarm_breaks_a_promise[total]"
LATE_COPIES = "tests/sequencing/test_swarm.py::test_no_run_with_late_copies_of_joins_and_leaves_breaks_a_promise[total]"

MUTATIONS = [
    Mutation(
        name="what was numbered right after the own join does not wait for it",
        module="protocols/sequencing/delivery.py",
        right="number >= self.joined_at",
        wrong="number > self.joined_at",
        tests=(f"{RULES}::test_what_was_numbered_right_after_the_own_join_waits_for_it",),
        swarms=(SWARM, LATE_COPIES),
    ),
    Mutation(
        name="a client holds back one event more than its limit",
        module="protocols/sequencing/delivery.py",
        right="self.held_events < self._limit",
        wrong="self.held_events <= self._limit",
        tests=(f"{RULES}::test_no_more_is_held_back_than_the_limit_but_what_is_next_always_finds_room",),
    ),
    Mutation(
        name="a run is dropped from the history when its first message is stable",
        module="protocols/sequencing/state.py",
        right="if event.last > self.stable:",
        wrong="if event.seq > self.stable:",
        tests=(f"{RULES}::test_a_run_is_kept_until_the_last_of_its_messages_is_delivered_everywhere",),
    ),
    Mutation(
        name="the directory grants a join by a request that is over",
        module="protocols/sequencing/directory.py",
        right="self.locations[group] == source and req > self.over[group].get(client, -1)",
        wrong="self.locations[group] == source",
        tests=(f"{RULES}::test_a_late_copy_of_a_request_that_is_over_makes_no_new_entry",),
        swarms=(LATE_COPIES,),
    ),
    Mutation(
        name="the directory prepares a join by a request that is over",
        module="protocols/sequencing/directory.py",
        right="if self.operation is not None or req <= self.over[group].get(client, -1):",
        wrong="if self.operation is not None:",
        tests=(f"{RULES}::test_a_late_copy_of_a_request_that_is_over_makes_no_new_entry",),
        swarms=(LATE_COPIES,),
    ),
    Mutation(
        name="a message that was numbered before its sender joined counts as a member's",
        module="protocols/sequencing/client.py",
        right="self.outbox.find(group, event.run.first) if self.hold.covers(event) else None",
        wrong="self.outbox.find(group, event.run.first)",
        tests=(f"{CLIENT}::test_a_message_that_was_numbered_before_the_own_join_is_not_taken_for_a_members",),
    ),
    Mutation(
        name="a run of which somebody has the first message is not sent again",
        module="protocols/sequencing/state.py",
        right="if number < event.last and event.seq <= until]",
        wrong="if number < event.seq and event.seq <= until]",
        tests=(f"{RULES}::test_a_run_is_kept_until_the_last_of_its_messages_is_delivered_everywhere",),
    ),
    Mutation(
        name="the first number that its sender does not know is forgotten",
        module="protocols/sequencing/senders.py",
        right="if first + count > counter:",
        wrong="if first > counter:",
        tests=(f"{RULES}::test_a_number_that_its_sender_may_not_know_is_told_again_when_it_asks",),
    ),
    Mutation(
        name="who leaves confirms its leave by a report of what it has delivered",
        module="protocols/sequencing/state.py",
        right="self.departing.get(client, number + 1) - 1)",
        wrong="self.departing.get(client, number))",
        tests=(f"{HOSTILE}::test_a_leaver_that_says_it_has_delivered_its_leave_before_it_confirms_it_is_still_sent_it",),
    ),
    Mutation(
        name="what was given to all but the last that joined is numbered",
        module="protocols/sequencing/numbering.py",
        right="packet.view < state.joined or",
        wrong="packet.view < state.joined - 1 or",
        tests=(f"{BODIES}::test_what_was_given_to_members_before_a_join_is_not_numbered_after_it",),
    ),
    Mutation(
        name="a join that cannot be granted now loses the entry that it had",
        module="protocols/sequencing/directory.py",
        right="                    self.entries[group][client] = before\n",
        wrong="                    del self.entries[group][client]\n",
        tests=(f"{RULES}::test_a_late_copy_of_a_join_that_cannot_be_granted_now_does_not_undo_it",),
    ),
    Mutation(
        name="a group is given by a move while it is still given by the last",
        module="protocols/sequencing/moves.py",
        right=" or any(map(self.suspended, groups)):",
        wrong=":",
        tests=(f"{RULES}::test_a_group_is_not_given_by_another_move_before_the_end_of_the_last_is_known",),
    ),
    Mutation(
        name="a group is given by a move that has ended",
        module="protocols/sequencing/moves.py",
        right="if packet.op <= self.settled or packet.op in self.giving",
        wrong="if packet.op in self.giving",
        tests=(f"{RULES}::test_a_late_copy_of_the_opening_of_a_move_that_has_ended_takes_no_group_away",),
    ),
    Mutation(
        name="5.2: a context forgets what not everybody has delivered",
        module="protocols/sequencing/contexts.py",
        right="if number > stable.get(group, -1)}",
        wrong="if number > stable.get(group, -1) + 3}",
        tests=(f"{GOLDEN}::test_what_every_member_has_delivered_is_in_no_context",),
        swarms=("tests/sequencing/failover/test_swarm.py::test_no_run_with_crashes_breaks_a_promise[hybrid-]",),
    ),
    Mutation(
        name="5.2: what somebody who leaves has not delivered counts as delivered everywhere",
        module="protocols/sequencing/state.py",
        right="min(self.reached.values(), default=self.seq))",
        wrong="min((self.reached[member] for member in self.members), default=self.seq))",
        tests=(f"{GOLDEN}::test_a_group_is_stable_as_far_as_members_and_leavers_have_delivered_it",),
    ),
]
