"""Protocols of one group: single-phase, two-phase, causal-vector and fifo."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

SINGLE_PHASE = "tests/protocols/test_single_phase.py"
TWO_PHASE = "tests/protocols/test_two_phase.py"
CAUSAL_VECTOR = "tests/protocols/test_causal_vector.py"
FIFO = "tests/protocols/test_fifo.py"
ALL_SCHEDULES = "tests/exhaustive/test_all_schedules.py"
_OWN_LIMIT = """\
The limit of a cut can only have the rank of the run's own origin if it is a place of that origin: then the whole run lies
before it, for an origin's clock, and its next run, are after its last operation; and the run is not cut either way."""

CONNECTIONS = "tests/simulation/test_connections.py"
FAULTS = "tests/simulation/test_faults.py"

MUTATIONS = [
    Mutation(
        name="what follows something late on a simulated connection overtakes it",
        module="simulation/connections.py",
        right="max(min(times), self._last.get(way, 0))",
        wrong="min(times)",
        tests=(f"{CONNECTIONS}::test_whatever_is_sent_arrives_once_and_in_order",),
    ),
    Mutation(
        name="what a simulated network loses is sent again after equal times",
        module="simulation/connections.py",
        right="timeout_ns = min(2 * timeout_ns, BACK_OFF_MAX * self._timeout_ns)",
        wrong="timeout_ns = self._timeout_ns",
        tests=(f"{CONNECTIONS}::test_the_timeout_doubles_up_to_a_bound",),
    ),
    Mutation(
        name="what is submitted at once becomes a run that the window of the protocol never has room for",
        module="views/ordering.py",
        right="min(settings.run_max, self.protocol.longest_run())",
        wrong="settings.run_max",
        tests=(f"{FAULTS}::test_a_member_that_has_no_room_because_of_a_partition_goes_on_after_a_crash",),
    ),
    Mutation(
        name="a run is cut one operation later where its origin has the rank of the limit",
        module="protocols/single_phase/protocol.py",
        right="(rank(run.origin, limit_time, self.members, self._rotating) < limit_rank)",
        wrong="(rank(run.origin, limit_time, self.members, self._rotating) <= limit_rank)",
        tests=(SINGLE_PHASE, f"{ALL_SCHEDULES}::test_two_members_with_runs_of_several_messages"),
        harmless=_OWN_LIMIT,
    ),
    Mutation(
        name="a run is cut before another at the frontier itself",
        module="protocols/single_phase/protocol.py",
        right="if self._pending and self._pending[0][:2] < limit:",
        wrong="if self._pending and self._pending[0][:2] <= limit:",
        tests=(SINGLE_PHASE, f"{ALL_SCHEDULES}::test_two_members_with_runs_of_several_messages"),
        harmless="Where the two are equal, the limit is set to what it is.",
    ),
    Mutation(
        name="a member that comes first at equal times need not have reached the time itself",
        module="protocols/single_phase/positions.py",
        right="return time if rank(other, time, members, rotating) < rank(member, time, members, rotating) else time - 1",
        wrong="return time - 1",
        tests=(f"{SINGLE_PHASE}::TestOrder::test_everything_before_the_frontier_is_stable_for_every_other_member",),
    ),
    Mutation(
        name="of members that are equally far the last one counts",
        module="protocols/single_phase/positions.py",
        right="return lowest + 1, clocks.index(lowest)",
        wrong="return lowest + 1, len(clocks) - 1 - clocks[::-1].index(lowest)",
        tests=(f"{SINGLE_PHASE}::TestOrder::test_everything_before_the_frontier_is_stable_for_every_other_member",),
    ),
    Mutation(
        name="a receiver's clock does not follow what it receives",
        module="protocols/single_phase/protocol.py",
        right="""\
        if clocks[me] < last:
            clocks[me] = last
""",
        wrong="",
        tests=(f"{SINGLE_PHASE}::TestOrder::test_what_a_member_sends_comes_after_all_that_it_has_received",),
    ),
    Mutation(
        name="what a member sends itself does not announce its clock",
        module="protocols/single_phase/protocol.py",
        right="self.clocks[me] = self.announced = last",
        wrong="self.clocks[me] = last",
        tests=(f"{SINGLE_PHASE}::TestCost::test_what_a_member_sent_itself_saves_an_acknowledgement",),
    ),
    Mutation(
        name="a relayed clock that covers less takes the place of one that covers more",
        module="protocols/single_phase/relaying.py",
        right="packets >= its_packets",
        wrong="packets <= its_packets",
        tests=(
            f"{SINGLE_PHASE}::TestCost::test_of_two_relayed_clocks_each_is_believed_as_soon_as_its_own_operations_are_here",
        ),
    ),
    Mutation(
        name="at the end of a view, a run that was delivered to its last message is delivered again",
        module="protocols/single_phase/remainder.py",
        right="packet.run.end > delivered[packet.run.origin]",
        wrong="packet.run.end >= delivered[packet.run.origin]",
        tests=(f"{SINGLE_PHASE}::TestEndOfAView::test_what_was_delivered_before_is_left_out_also_a_part_of_a_run",),
    ),
    Mutation(
        name="at the end of a view, the part of a run that was delivered is delivered again",
        module="protocols/single_phase/remainder.py",
        right="range(max(0, delivered[packet.run.origin] - packet.run.first), packet.run.count)",
        wrong="range(packet.run.count)",
        tests=(f"{SINGLE_PHASE}::TestEndOfAView::test_what_was_delivered_before_is_left_out_also_a_part_of_a_run",),
    ),
    Mutation(
        name="a relay tells only whom it goes to, not that it is public",
        module="protocols/single_phase/relaying.py",
        right="""\
        self.public = [max(known, said) for known, (said, _) in zip(self.public, vector, strict=True)]
""",
        wrong="",
        tests=(f"{SINGLE_PHASE}::TestCost::test_what_an_operation_has_told_everybody_is_not_relayed",),
    ),
    Mutation(
        name="the smallest proposal is final",
        module="protocols/two_phase.py",
        right="max(asked.largest, (timestamp, source))",
        wrong="min(asked.largest, (timestamp, source))",
        tests=(f"{TWO_PHASE}::test_the_largest_proposal_is_final_and_the_larger_id_breaks_a_tie",),
    ),
    Mutation(
        name="a final timestamp does not advance the clock",
        module="protocols/two_phase.py",
        right="""\
        self.clock = max(self.clock, key[0])
""",
        wrong="",
        tests=(f"{TWO_PHASE}::test_a_final_timestamp_advances_the_clock",),
    ),
    Mutation(
        name="what is final overtakes what is not",
        module="protocols/two_phase.py",
        right="""\
            if not self.queued[head].final:
                break
            ready = self.queued.pop(head)""",
        wrong="""\
            if not self.queued[head].final:
                continue
            ready = self.queued.pop(head)""",
        tests=(f"{TWO_PHASE}::test_a_final_run_waits_for_an_undecided_one_that_may_come_before_it",),
    ),
    Mutation(
        name="a window fewer is held back",
        module="protocols/two_phase.py",
        right="WINDOWS_HELD * self.options.outstanding:",
        wrong="(WINDOWS_HELD - 1) * self.options.outstanding:",
        tests=(f"{TWO_PHASE}::test_a_full_queue_leaves_requests_on_their_link_until_something_is_delivered",),
    ),
    Mutation(
        name="the origin's own proposal does not count",
        module="protocols/two_phase.py",
        right="self.asked[run.first] = Asked(others, key)",
        wrong="self.asked[run.first] = Asked(others, (0, 0))",
        tests=(f"{TWO_PHASE}::test_the_origins_own_proposal_counts",),
    ),
    Mutation(
        name="only messages of the same sender are waited for",
        module="protocols/causal_vector.py",
        right="return vector[origin] == delivered[origin] and all(map(le, vector, delivered))",
        wrong="return vector[origin] == delivered[origin]",
        tests=(f"{CAUSAL_VECTOR}::test_a_run_may_be_delivered_next_after_its_senders_last_and_after_all_its_causes",),
    ),
    Mutation(
        name="a run may come before an earlier one of its sender",
        module="protocols/causal_vector.py",
        right="vector[origin] == delivered[origin] and all(map(le, vector, delivered))",
        wrong="all(map(le, vector[:origin] + vector[origin + 1 :], delivered[:origin] + delivered[origin + 1 :]))",
        tests=(f"{CAUSAL_VECTOR}::test_a_run_may_be_delivered_next_after_its_senders_last_and_after_all_its_causes",),
    ),
    Mutation(
        name="what a release makes deliverable waits for the next packet",
        module="protocols/causal_vector.py",
        right="""\
                    released.append(Deliver(run))
                    moved = True
""",
        wrong="""\
                    released.append(Deliver(run))
""",
        tests=(f"{CAUSAL_VECTOR}::test_a_release_releases_what_waits_for_it_whatever_the_order_of_members",),
    ),
    Mutation(
        name="a repeated run that is held back is not known again",
        module="protocols/causal_vector.py",
        right="or (index < len(early) and early[index] == packet)",
        wrong="or False",
        tests=(f"{CAUSAL_VECTOR}::test_a_repeated_run_is_dropped_whether_it_was_delivered_or_waits",),
    ),
    Mutation(
        name="what was held back is delivered over a gap",
        module="protocols/fifo.py",
        right="""\
            if later.first != end:
                break
""",
        wrong="",
        tests=(f"{FIFO}::test_a_gap_that_stays_keeps_the_rest_waiting",),
    ),
    Mutation(
        name="a repeated run that was delivered last is not known again",
        module="protocols/fifo.py",
        right="if run.end <= self.next[source] or",
        wrong="if run.end < self.next[source] or",
        tests=(f"{FIFO}::test_a_repeated_run_is_dropped_whether_it_was_delivered_or_waits",),
    ),
    Mutation(
        name="what is held back is not bounded",
        module="protocols/fifo.py",
        right="if self.held + run.count > self.options.held:",
        wrong="if self.held > self.options.held:",
        tests=(f"{FIFO}::test_a_full_hold_back_buffer_leaves_the_packet_on_its_link_but_takes_what_fills_the_gap",),
    ),
]
