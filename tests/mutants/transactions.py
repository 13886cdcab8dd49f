"""Transactions: what a replica votes for, how ballots end what a client left behind, and what outlives a crash."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

BALLOTS = "tests/transactions/test_ballots.py"
CELLS = "tests/transactions/test_cells.py"
CLAIMS = "tests/transactions/test_claims.py"
HORIZON = "tests/transactions/test_horizon.py"
LOST_DISKS = "tests/transactions/test_lost_disks.py"
ORDER_LAYER = "tests/transactions/test_order_layer.py"
WAITING = "tests/transactions/test_waiting.py"
DUELS = "tests/transactions/test_swarm.py::test_whoever_ends_a_transaction_all_learn_one_outcome"
REBORN = "tests/transactions/test_swarm.py::test_committed_transactions_are_as_if_one_after_the_other[reborn]"

MUTATIONS = [
    Mutation(
        name="a prewrite is voted for while somebody ends the transaction",
        module="protocols/transactions/quorum_replica.py",
        right="        if t in state.promised:\n",
        wrong="        if False:\n",
        tests=(f"{BALLOTS}::test_nobody_votes_for_a_write_of_a_transaction_that_somebody_is_ending",),
    ),
    Mutation(
        name="accepting a ballot does not promise it",
        module="protocols/transactions/quorum_replica.py",
        right="            if ballot > FIRST:\n                state.promised[t] = ballot\n",
        wrong="",
        tests=(f"{BALLOTS}::test_a_replica_that_accepts_a_ballot_takes_no_older_one_afterwards",),
        swarms=(DUELS,),
    ),
    Mutation(
        name="the oldest accepted decision is proposed",
        module="protocols/transactions/terminator.py",
        right="max(accepted, key=lambda pair: pair[0])",
        wrong="min(accepted, key=lambda pair: pair[0])",
        tests=(f"{BALLOTS}::test_of_several_accepted_decisions_the_one_of_the_latest_ballot_is_proposed",),
        swarms=(DUELS,),
    ),
    Mutation(
        name="a replica is closed to the transaction at its horizon itself",
        module="protocols/transactions/durable.py",
        right="return t < self.closed and",
        wrong="return t <= self.closed and",
        tests=(f"{LOST_DISKS}::test_the_transaction_at_the_horizon_may_still_be_under_way[False]",),
    ),
    Mutation(
        name="a heartbeat is counted despite a gap",
        module="protocols/transactions/channels.py",
        right="return beat.sq <= channel.taken",
        wrong="return True",
        tests=(f"{ORDER_LAYER}::test_a_heartbeat_that_overtook_a_request_does_not_say_that_there_is_none",),
    ),
    Mutation(
        name="a replica without its disk forgets what others know to be read",
        module="protocols/transactions/durable.py",
        right="            mine.rts = max(mine.rts, cell.rts)\n",
        wrong="",
        tests=(f"{LOST_DISKS}::test_what_others_have_read_stays_read[False]",),
        swarms=(REBORN,),
    ),
    Mutation(
        name="a replica without its disk forgets below which everything counts as read",
        module="protocols/transactions/durable.py",
        right="        state.floor = max(state.floor, snapshot.floor)\n",
        wrong="",
        tests=(f"{LOST_DISKS}::test_what_others_have_read_stays_read[True]",),
        swarms=(REBORN,),
    ),
    Mutation(
        name="a reader waits for a write that can no longer become the value",
        module="protocols/transactions/cells.py",
        right="if self.wts.writer < other < t)",
        wrong="if other < t)",
        tests=(f"{CELLS}::test_a_prewrite_below_the_value_can_never_become_it_and_holds_nobody_up",),
    ),
    Mutation(
        name="a write that this replica did not vote for lets no reader go on",
        module="protocols/transactions/durable.py",
        right="                touched += [] if key in touched else [key]\n",
        wrong="",
        tests=(f"{WAITING}::test_where_majorities_decide_a_reader_does_not_wait_for_a_write_that_a_younger_one_has_buried",),
    ),
    Mutation(
        name="an end that installs nothing lets no reader go on",
        module="protocols/transactions/replica.py",
        right="            outcomes += self._look_again(key)\n",
        wrong="            outcomes += self._look_again(key) if installed else []\n",
        tests=(f"{WAITING}::test_a_reader_goes_on_when_the_write_that_it_waits_for_is_undone",),
    ),
    Mutation(
        name="a replica closes to what it holds undecided",
        module="protocols/transactions/horizon.py",
        right="oldest if undecided is None else min(oldest, undecided))",
        wrong="oldest)",
        tests=(f"{HORIZON}::test_a_replica_does_not_close_above_what_it_holds_undecided",),
    ),
    Mutation(
        name="nobody may write what it has read itself",
        module="protocols/transactions/cells.py",
        right="        if t < read:\n",
        wrong="        if t <= read:\n",
        tests=(f"{CELLS}::test_a_transaction_may_write_what_it_has_read_itself",),
    ),
    Mutation(
        name="half of the replicas are a majority",
        module="protocols/transactions/votes.py",
        right="return replicas // 2 + 1",
        wrong="return (replicas + 1) // 2",
        tests=(f"{BALLOTS}::test_two_of_four_decide_nothing",),
    ),
    Mutation(
        name="a replica without its disk takes over the oldest accepted decision",
        module="protocols/transactions/durable.py",
        right="or ballot > state.accepted[t][0]:",
        wrong="or ballot < state.accepted[t][0]:",
        tests=(f"{LOST_DISKS}::test_of_what_others_have_accepted_the_latest_is_taken_over",),
    ),
    Mutation(
        name="a replica without its disk asks one replica too few",
        module="protocols/transactions/durable.py",
        right="others < len(group) - majority(len(group)) + 1:",
        wrong="others < len(group) - majority(len(group)):",
        tests=(f"{LOST_DISKS}::test_a_replica_says_nothing_until_enough_others_have_told_it_what_it_may_have_said",),
    ),
    Mutation(
        name="whoever claims a key has to wait for itself",
        module="protocols/transactions/claims.py",
        right="min(table[claimed]) < t for",
        wrong="min(table[claimed]) <= t for",
        tests=(f"{CLAIMS}::test_who_claims_whatever_key_is_waited_for_everywhere",),
    ),
    Mutation(
        name="a vote that no longer counts is not asked for again",
        module="protocols/transactions/quorum_client.py",
        right="for replica in ask.to if replica not in counted)",
        wrong="for replica in ask.to if replica not in ask.votes)",
        tests=(
            "tests/transactions/test_quorum_client.py::"
            "test_a_vote_of_a_replica_that_has_lost_its_disk_since_is_asked_for_again",
        ),
    ),
    Mutation(
        name="a store that has failed is asked all the same",
        module="transactions/store.py",
        right="        if self._over is not None:\n            raise self._over\n",
        wrong="",
        tests=(
            "tests/transactions/test_outages.py::"
            "test_where_all_must_agree_every_call_after_a_loss_says_that_the_store_has_failed",
        ),
    ),
]
