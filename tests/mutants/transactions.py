"""Transactions: what a replica votes for, how ballots end what a client left behind, and what outlives a crash."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

BALLOTS = "tests/transactions/test_ballots.py"
CELLS = "tests/transactions/test_cells.py"
CLAIMS = "tests/transactions/test_claims.py"
HORIZON = "tests/transactions/test_horizon.py"
KEPT = "tests/transactions/test_kept.py"
LOST_DISKS = "tests/transactions/test_lost_disks.py"
ORDER_LAYER = "tests/transactions/test_order_layer.py"
WAITING = "tests/transactions/test_waiting.py"
DUELS = "tests/transactions/test_swarm.py::test_whoever_ends_a_transaction_all_learn_one_outcome"
PIECES = "tests/transactions/test_pieces.py"
RESTARTS = "tests/transactions/test_restarts.py"
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
        module="protocols/transactions/durable.py",
        right="        if ballot > FIRST:\n            self.promised[t] = ballot\n",
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
        right="        self.floor = max(self.floor, rest.floor)\n",
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
        right="or ballot > self.accepted[t][0]:",
        wrong="or ballot < self.accepted[t][0]:",
        tests=(f"{LOST_DISKS}::test_of_what_others_have_accepted_the_latest_is_taken_over",),
    ),
    Mutation(
        name="a replica without its disk asks one replica too few",
        module="protocols/transactions/recovery.py",
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
    Mutation(
        name="what waits for a record leaves before it",
        module="protocols/gate.py",
        right="            elif self.saved > self._durable:\n",
        wrong="            elif False:\n",
        tests=(f"{KEPT}::test_effects_leave_in_order_each_when_all_records_before_it_are_durable",),
    ),
    Mutation(
        name="records come after what depends on them",
        module="protocols/transactions/quorum_replica.py",
        right="return [*map(Save, changes), *effects] if changes else effects",
        wrong="return [*effects, *map(Save, changes)] if changes else effects",
        tests=(f"{KEPT}::test_what_an_answer_stands_for_is_written_before_it_leaves[a write]",),
    ),
    Mutation(
        name="what was read is not written",
        module="protocols/transactions/durable.py",
        right="            self.note(records.Capped(self.cap))\n",
        wrong="",
        tests=(f"{KEPT}::test_what_an_answer_stands_for_is_written_before_it_leaves[a read]",),
    ),
    Mutation(
        name="a store is founded in one step",
        module="protocols/transactions/recovery.py",
        right="founded = Stage.BEGUN in stages or all(stage is Stage.FOUNDING for stage in stages)",
        wrong="founded = True",
        tests=(f"{KEPT}::test_nobody_begins_before_all_have_written_that_they_found_the_store",),
    ),
    Mutation(
        name="a replica that lost its disk founds a new store",
        module="protocols/transactions/recovery.py",
        right="all(stage in (Stage.BLANK, Stage.FOUNDING) for stage in stages)",
        wrong="None not in stages",
        tests=(f"{KEPT}::test_who_has_nothing_while_another_has_begun_lost_its_disk_and_needs_enough_others",),
    ),
    Mutation(
        name="replicas that kept nothing, and were all there before, found a new store",
        module="protocols/transactions/recovery.py",
        right="        if kept and self._founds():\n",
        wrong="        if self._founds():\n",
        tests=(f"{RESTARTS}::test_replicas_that_kept_nothing_and_are_all_gone_are_not_taken_for_a_new_store",),
    ),
    Mutation(
        name="a replica that is restarted before anything was said counts as one that took part",
        module="live/network/admission.py",
        right="known.incarnation if known.took_part() or number >= settings.restartable else None",
        wrong="known.incarnation",
        tests=(f"{RESTARTS}::test_replicas_that_are_restarted_before_the_store_has_come_together_found_it_all_the_same",),
    ),
    Mutation(
        name="that a process took part is forgotten with the next one",
        module="live/network/peers.py",
        right="        self._took_part = self.took_part()\n",
        wrong="",
        tests=(f"{RESTARTS}::test_that_a_process_took_part_is_known_when_the_next_one_ends_before_it_says_anything",),
    ),
    Mutation(
        name="a replica with a journal and one without go on together",
        module="live/settings.py",
        right="None not in (mine.durable, theirs.durable) and mine.durable != theirs.durable",
        wrong="False",
        tests=(f"{RESTARTS}::test_either_all_replicas_have_journals_or_none",),
    ),
    Mutation(
        name="an incarnation is used twice",
        module="protocols/transactions/recovery.py",
        right="            state.incarnation = latest + 1\n",
        wrong="            state.incarnation = latest\n",
        tests=(f"{KEPT}::test_an_incarnation_that_is_not_new_is_given_up_for_a_later_one",),
    ),
    Mutation(
        name="an attempt to recover that was not completed counts",
        module="protocols/transactions/durable.py",
        right="        if isinstance(record, records.Emptied):\n            state = Durable(stage=Stage.BLANK)\n",
        wrong="        if isinstance(record, records.Emptied):\n            pass\n",
        tests=(f"{KEPT}::test_what_an_attempt_to_recover_had_written_counts_no_more_after_the_next",),
    ),
    Mutation(
        name="a state is read only as far as one piece goes",
        module="protocols/transactions/pieces.py",
        right="                    return self._piece(tables, None), place\n",
        wrong="                    return self._piece(tables, self._rest()), None\n",
        tests=(f"{PIECES}::test_the_pieces_of_a_state_are_all_of_it[1]",),
    ),
    Mutation(
        name="a piece begins with the last entry of the one before",
        module="protocols/transactions/pieces.py",
        right="bisect_right(order, after)",
        wrong="bisect_right(order, after) + 1",
        tests=(f"{PIECES}::test_the_pieces_of_a_state_are_all_of_it[1]",),
    ),
    Mutation(
        name="one that was given up is taken back with its old disk",
        module="protocols/transactions/quorum_replica.py",
        right="        if source in self.state.gone:\n",
        wrong="        if False:\n",
        tests=(f"{HORIZON}::test_one_that_is_silent_while_too_much_happens_is_given_up_and_can_do_nothing_more",),
    ),
]
