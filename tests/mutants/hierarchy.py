"""Matrices, coordinators and hierarchies of clusters: order inside a cluster, relaying between them, changes of membership."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

BARRIER = "tests/hierarchy/test_barrier.py::test_a_site_that_moves_waits_until_everybody_has_what_it_has_delivered"
CLUSTERS = "tests/hierarchy/test_clusters.py"
MEMBERSHIP = "tests/hierarchy/test_membership.py"
RELAY = "tests/hierarchy/test_relay.py"
OVERTAKING = "tests/hierarchy/test_swarm.py::test_no_change_overtakes_what_the_one_that_changes_has_delivered[matrix]"

MUTATIONS = [
    Mutation(
        name="a barrier of one phase, without a flush",
        module="protocols/hierarchy/membership.py",
        right="""\
        if barrier.phase == STOPPING:
            self._await(why, FLUSHING, other, Flush(number), effects)
        elif barrier.phase == FLUSHING and why == MOVE:
""",
        wrong="""\
        if barrier.phase == STOPPING:
            barrier = msgspec.structs.replace(barrier, phase=FLUSHING)
        if barrier.phase == FLUSHING and why == MOVE:
""",
        tests=(f"{BARRIER}[matrix]",),
        swarms=(OVERTAKING,),
    ),
    Mutation(
        name="what may not be sent while a site moves is sent",
        module="protocols/hierarchy/membership.py",
        right="if wholly or any(self.routes.touches(self.site, dest, pivot) for dest in asked):",
        wrong="if wholly:",
        tests=(f"{MEMBERSHIP}::test_nothing_is_sent_to_a_site_while_it_moves[matrix]",),
    ),
    Mutation(
        name="the last cluster but one may be left, and with it the layer above",
        module="protocols/hierarchy/notes.py",
        right="return counts[0] - 1 > counts[1]",
        wrong="return counts[0] - 1 >= counts[1]",
        tests=(f"{MEMBERSHIP}::test_a_hierarchy_of_two_clusters_loses_none",),
    ),
    Mutation(
        name="what was for everybody goes back into the cluster from which it came",
        module="protocols/clusters/site.py",
        right="                if number != via:\n",
        wrong="                if True:\n",
        tests=(f"{RELAY}::test_a_multicast_to_all_comes_to_every_site_once[matrix]",),
    ),
    Mutation(
        name="what is delivered at once is taken from what is held back",
        module="protocols/clusters/site.py",
        right="self.held -= sum(arrival.letter.weight for arrival in arrivals[1:])",
        wrong="self.held -= sum(arrival.letter.weight for arrival in arrivals)",
        tests=(f"{MEMBERSHIP}::test_a_packet_that_comes_again_while_it_waits_takes_no_more_room[matrix]",),
    ),
    Mutation(
        name="a coordinator takes what comes early and leaves the rest waiting",
        module="protocols/clusters/coordinator.py",
        right="        while self.taken[slot] in waiting:\n",
        wrong="        if self.taken[slot] in waiting:\n",
        tests=(f"{CLUSTERS}::test_a_link_to_the_coordinator_keeps_its_order",),
    ),
    Mutation(
        name="a coordinator does not know a packet again that waits",
        module="protocols/clusters/coordinator.py",
        right="return number >= self.taken[slot] and number not in self.early[slot]",
        wrong="return number >= self.taken[slot]",
        tests=(f"{MEMBERSHIP}::test_a_packet_that_comes_again_while_it_waits_takes_no_more_room[coordinator]",),
    ),
    Mutation(
        name="a message to several counts as sent to the later ones when their copies leave",
        module="protocols/clusters/matrix.py",
        right="return [Stamped(others, tags.DENSE, tuple(self.sent))] if others else []",
        wrong="""\
return [
                Stamped((one,), tags.DENSE, tuple(n - (one < i - row and i - row in others) for i, n in enumerate(self.sent)))
                for one in others
            ]""",
        tests=(f"{CLUSTERS}::test_a_message_to_several_counts_as_sent_to_all_before_its_first_copy_leaves",),
    ),
    Mutation(
        name="where only changes travel, a delivery does not count as known",
        module="protocols/clusters/matrix.py",
        right="            self._learn(own, self.delivered[sender])\n",
        wrong="",
        tests=(f"{CLUSTERS}::test_a_trace_of_the_matrix_is_as_specified[changes-rst_trace_diff]",),
    ),
    Mutation(
        name="what was said to an earlier change counts for the next",
        module="protocols/hierarchy/membership.py",
        right="(barrier.phase, barrier.number) == (phase, packet.number)",
        wrong="barrier.phase == phase",
        tests=(f"{MEMBERSHIP}::test_what_was_said_to_an_earlier_change_and_comes_again_does_not_count_for_the_next[matrix]",),
    ),
    Mutation(
        name="a second newcomer is let in before everybody knows the first",
        module="protocols/hierarchy/membership.py",
        right="if self.barrier is not None or self.announced:",
        wrong="if self.barrier is not None:",
        tests=(f"{MEMBERSHIP}::test_a_second_newcomer_waits_until_everybody_knows_the_first",),
    ),
    Mutation(
        name="a message to oneself does not count as delivered",
        module="protocols/clusters/matrix.py",
        right="""\
        if self.me in slots:
            self.delivered[self.me] += 1
""",
        wrong="",
        tests=(f"{CLUSTERS}::test_all_encodings_deliver_the_same_on_random_runs",),
    ),
]
