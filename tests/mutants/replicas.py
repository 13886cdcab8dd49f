"""Replicas of stores that survive: each rule of the specification's table of ablations switched off."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

BALLOTS = "tests/transactions/test_ballots.py"
CELLS = "tests/transactions/test_cells.py"
CLIENT = "tests/transactions/test_quorum_client.py"
KEPT = "tests/transactions/test_kept.py"
LOST_DISKS = "tests/transactions/test_lost_disks.py"
GOLDEN = "tests/transactions/test_golden.py"
STEPS = f"{GOLDEN}::test_replicas_survive_crashes_step_by_step"
SWARM = "tests/transactions/test_swarm.py::test_committed_transactions_are_as_if_one_after_the_other"
CRASHING = f"{SWARM}[crashing]"
DUELS = "tests/transactions/test_swarm.py::test_whoever_ends_a_transaction_all_learn_one_outcome"

DURABLE = "protocols/transactions/durable.py"
QUORUM_CLIENT = "protocols/transactions/quorum_client.py"
QUORUM_REPLICA = "protocols/transactions/quorum_replica.py"

MUTATIONS = [
    Mutation(
        name="T2: a read counts when one replica has answered it",
        module=QUORUM_CLIENT,
        right="if len(counted) < majority(len(ask.to)):",
        wrong="if not counted:",
        tests=(f"{CLIENT}::test_a_read_and_a_write_each_need_a_majority",),
        swarms=(CRASHING,),
    ),
    Mutation(
        name="T2: nobody remembers who has read",
        module="protocols/transactions/cells.py",
        right="        self.rts = max(self.rts, t)\n        return Found(self.wts",
        wrong="        return Found(self.wts",
        tests=(f"{LOST_DISKS}::test_what_others_have_read_stays_read[False]",),
        swarms=(CRASHING,),
    ),
    Mutation(
        name="T3: a client decides alone",
        module=QUORUM_CLIENT,
        right="        return [Send(ask.packet, replicas)]\n",
        wrong="        return [Send(Decide(t, decision), replicas), *self._ended(now, t, decision)]\n",
        tests=(f"{CLIENT}::test_a_commit_is_decided_by_a_majority_that_has_accepted_it",),
        swarms=(CRASHING,),
    ),
    Mutation(
        name="T4: nobody ends what a client left behind",
        module=QUORUM_REPLICA,
        right="for termination in self._terminations.late(now):",
        wrong="for termination in self._terminations.late(-1):",
        tests=(f"{BALLOTS}::test_what_a_client_left_behind_is_ended_after_the_lease",),
        swarms=(CRASHING,),
    ),
    Mutation(
        name="T4: a replica aborts by itself what a client left behind",
        module=QUORUM_REPLICA,
        right="effects += self._try_to_end(now, termination)",
        wrong="effects += self._learn(now, termination.t, ABORT)",
        tests=(f"{BALLOTS}::test_what_a_client_left_behind_is_ended_after_the_lease",),
        swarms=(CRASHING, DUELS),
    ),
    Mutation(
        name="T4: what may have been accepted is aborted",
        module="protocols/transactions/terminator.py",
        right="[1] if accepted else ABORT",
        wrong="[1] if False else ABORT",
        tests=(f"{BALLOTS}::test_the_commit_that_a_client_left_behind_is_completed",),
        swarms=(CRASHING, DUELS),
    ),
    Mutation(
        name="T4: a decision is accepted in spite of a later promise",
        module=QUORUM_REPLICA,
        right="if ballot < state.promised.get(t, FIRST) or (",
        wrong="if (isinstance(packet, Prepare) and ballot < state.promised.get(t, FIRST)) or (",
        tests=(f"{BALLOTS}::test_who_has_promised_a_ballot_does_not_accept_the_commit_of_a_client_any_more",),
        swarms=(CRASHING, DUELS),
    ),
    Mutation(
        name="T4: a ballot of its own is not written",
        module=DURABLE,
        right="        self.note(records.Tries(t, ballot))\n",
        wrong="",
        tests=(f"{KEPT}::test_a_ballot_of_its_own_is_written_before_it_is_used",),
    ),
    Mutation(
        name="T7: a restart forgets who has read",
        module=DURABLE,
        right="floor=max(self.floor, Timestamp(self.cap, LATEST_PNO)))",
        wrong="floor=self.floor)",
        tests=(f"{LOST_DISKS}::test_what_others_have_read_stays_read[True]", f"{STEPS}[rts_cap]"),
        swarms=(f"{SWARM}[restless]",),
    ),
    Mutation(
        name="T8: a replica that lost its disk begins with nothing",
        module="protocols/transactions/recovery.py",
        right="if self._state.stage is not Stage.BLANK or not enough(counted, self._me, self._groups):",
        wrong="if self._state.stage is not Stage.BLANK or not counted:",
        tests=(f"{LOST_DISKS}::test_a_replica_says_nothing_until_enough_others_have_told_it_what_it_may_have_said",),
        swarms=(f"{SWARM}[restless]",),
    ),
    Mutation(
        name="T8: a prewrite that others told of counts as a vote",
        module="protocols/transactions/cells.py",
        right="        if t < read:\n",
        wrong="        if t < read and t not in self.prewrites:\n",
        tests=(f"{LOST_DISKS}::test_a_prewrite_that_others_told_of_is_no_vote",),
    ),
    Mutation(
        name="T8: votes from before a disk was lost count",
        module="protocols/transactions/votes.py",
        right="if stance.incarnation >= latest.get(replica, 0))",
        wrong="if True)",
        tests=(
            f"{GOLDEN}::test_a_vote_counts_unless_somebody_knows_a_later_life_of_the_voter",
            f"{CLIENT}::test_a_vote_of_a_replica_that_has_lost_its_disk_since_is_asked_for_again",
        ),
    ),
    Mutation(
        name="T8: a replica that lost its disk is not told of prewrites",
        module=DURABLE,
        right="                self._hold(t, key, prewrite)\n        for t, ballot in piece.promised:",
        wrong="                pass\n        for t, ballot in piece.promised:",
        tests=(f"{STEPS}[blank_rejoin]",),
        swarms=(f"{SWARM}[restless]",),
    ),
    Mutation(
        name="T8: a replica that lost its disk is not told of promises",
        module=DURABLE,
        right="            self.promised[t] = max(ballot, self.promised.get(t, ballot))\n",
        wrong="            pass\n",
        tests=(f"{LOST_DISKS}::test_a_promise_that_was_lost_is_kept_by_whoever_knows_of_it",),
        swarms=(DUELS,),
    ),
    Mutation(
        name="T8: a replica that lost its disk is not told of what was accepted",
        module=DURABLE,
        right="            if t not in self.accepted or ballot > self.accepted[t][0]:\n",
        wrong="            if False:\n",
        tests=(f"{LOST_DISKS}::test_of_what_others_have_accepted_the_latest_is_taken_over",),
        swarms=(DUELS,),
    ),
]
