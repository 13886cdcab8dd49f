"""The audit: which orders hold in a trace."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

GROUPS = "tests/audit/test_groups.py"
RANKS = "tests/audit/test_ranks.py"
VIEWS = "tests/audit/test_views.py"
ORACLE = "tests/audit/test_oracle.py"
TASKS = "tests/audit/test_tasks.py"
PLANTED = f"{ORACLE}::test_a_planted_fault_is_found_alone"
SERIALISABLE = "tests/audit/test_serialisable.py"
PIECES = "tests/audit/test_transaction_pieces.py"
CALL_SEGMENTS = "tests/audit/test_call_segments.py"
SIGNIFICANT = "tests/audit/test_significant.py"
ISOLATION = "tests/audit/test_isolation.py"

MUTATIONS = [
    Mutation(
        name="what a crashed member sent needs no destinations, whoever delivered it",
        module="pipeline/auditing/destinations.py",
        right="messages = int((correct[process[sends[unaddressed]]] | reached).sum())",
        wrong="messages = int(correct[process[sends[unaddressed]]].sum())",
        tests=(
            "tests/audit/test_spark.py::test_what_a_crashed_member_sent_and_nobody_correct_delivered_needs_no_destinations",
        ),
    ),
    Mutation(
        name="two members are not together at the moment at which a log ends",
        module="pipeline/auditing/groups.py",
        right="low[:, None, :]) <= np.minimum(",
        wrong="low[:, None, :]) < np.minimum(",
        tests=(f"{GROUPS}::test_the_end_of_a_log_is_a_moment_at_which_members_may_be_together",),
    ),
    Mutation(
        name="a delivery is of the group that it names itself, whatever its sender says",
        module="pipeline/auditing/in_groups.py",
        right="            log.piece[deliveries[told]] = by_sender[told]\n",
        wrong="",
        tests=(f"{GROUPS}::test_groups_are_judged_alike_in_any_number_of_pieces",),
    ),
    Mutation(
        name="the simplest of what is wrong in groups is that of the last piece",
        module="pipeline/auditing/group_logs.py",
        right="simplest = min(self, other, key=lambda each: each.simplest)",
        wrong="simplest = max(self, other, key=lambda each: each.violations)",
        tests=(f"{GROUPS}::test_groups_are_judged_alike_in_any_number_of_pieces",),
    ),
    Mutation(
        name="ranks are trusted although deliveries could not be merged",
        module="pipeline/auditing/ranks.py",
        right="if take(ids, start[:-1].copy(), start[1:].copy(), size, 1, rank) < len(ids):",
        wrong="if take(ids, start[:-1].copy(), start[1:].copy(), size, 1, rank) < 0:",
        tests=(f"{RANKS}::test_a_segment_in_which_a_message_is_delivered_twice_has_no_ranks",),
        swarms=(f"{RANKS}::test_no_disagreement_hides_behind_a_boundary",),
    ),
    Mutation(
        name="messages may be delivered in any order of their ranks",
        module="pipeline/auditing/ranks.py",
        right="(place <= before).any()",
        wrong="(place < 0).any()",
        tests=(f"{RANKS}::test_no_disagreement_hides_behind_a_boundary",),
    ),
    Mutation(
        name="a message may have the rank of the one before",
        module="pipeline/auditing/ranks.py",
        right="(place <= before).any()",
        wrong="(place < before).any()",
        tests=(RANKS,),
        harmless="Two messages never have one rank: it is the same message again, and only first deliveries have an order.",
    ),
    Mutation(
        name="a delivery of an older message may follow those of its segment",
        module="pipeline/auditing/ranks.py",
        right="(ranks.index[old] == np.arange",
        wrong="(ranks.index[old] >= np.arange",
        tests=(f"{RANKS}::test_no_disagreement_hides_behind_a_boundary",),
    ),
    Mutation(
        name="the ranks of what is in flight are forgotten at a boundary",
        module="pipeline/auditing/boundaries.py",
        right="return np.asarray(~real | found)",
        wrong="return ~real",
        tests=(f"{RANKS}::test_no_disagreement_hides_behind_a_boundary",),
    ),
    Mutation(
        name="the rank of what nobody sent is forgotten at a boundary",
        module="pipeline/auditing/boundaries.py",
        right="return np.asarray(~real | found)",
        wrong="return np.asarray(found)",
        tests=(f"{RANKS}::test_what_nobody_sent_has_its_rank_in_all_segments",),
    ),
    Mutation(
        name="of deliveries that cross a boundary, those that find no room are forgotten",
        module="pipeline/auditing/segments.py",
        right="if judged.foreign > len(judged.found.foreign) and",
        wrong="if judged.foreign < 0 and",
        tests=(f"{ORACLE}::test_where_too_much_crosses_the_boundaries_one_task_judges",),
    ),
    Mutation(
        name="what is packed loses the signs of its steps",
        module="pipeline/codec.py",
        right="return np.cumsum(steps, axis=0, dtype=dtype)",
        wrong="return np.cumsum(np.abs(steps), axis=0, dtype=dtype)",
        tests=(f"{TASKS}::test_packed_arrays_are_the_same",),
    ),
    Mutation(
        name="who delivers a message does not know it afterwards",
        module="pipeline/auditing/kernel.py",
        right="""\
    if number + 1 > state.known[process, origin]:
        state.known[process, origin] = number + 1
""",
        wrong="",
        tests=(f"{PLANTED}[a causal swap-1]",),
    ),
    Mutation(
        name="a message is missing only where its sender has sent something since",
        module="pipeline/auditing/kernel.py",
        right="if state.owed_seq[process, other] < bound and missing < 0 and",
        wrong="if state.owed_seq[process, other] < bound - 1 and missing < 0 and",
        tests=(f"{PLANTED}[a FIFO swap-1]",),
    ),
    Mutation(
        name="what only others than its crashed sender have delivered was never sent",
        module="pipeline/auditing/settling.py",
        right="messages.status[row, process] == DELIVERED and counts and reached_by < 0:",
        wrong="messages.status[row, process] == DELIVERED and counts and False:",
        tests=(f"{ORACLE}::test_what_one_correct_member_has_of_a_crashed_one_all_must_have[1]",),
    ),
    Mutation(
        name="behind a boundary, what only others than its crashed sender have delivered was never sent",
        module="pipeline/auditing/boundaries.py",
        right="ended & (sending | delivered.any(axis=1)) & lacking.any(axis=1)",
        wrong="ended & sending & lacking.any(axis=1)",
        tests=(f"{ORACLE}::test_what_one_correct_member_has_of_a_crashed_one_all_must_have[2]",),
    ),
    Mutation(
        name="what a message of an earlier segment knew is not learnt with it",
        module="pipeline/auditing/boundaries.py",
        right="        exact[older[found]] = np.maximum(exact[older[found]], start.in_flight.vector[rows[found]])\n",
        wrong="",
        tests=(f"{PLANTED}[a causal swap through a third member-3]",),
    ),
    Mutation(
        name="two members may deliver neighbours in different orders",
        module="pipeline/auditing/total.py",
        right="                if there < furthest:\n",
        wrong="                if there < furthest - 1:\n",
        tests=(f"{PLANTED}[a disagreement-1]",),
    ),
    Mutation(
        name="what a transaction writes again counts as written",
        module="pipeline/auditing/transactions.py",
        right="key[order[1:]] != key[order[:-1]]",
        wrong="True",
        tests=(f"{SERIALISABLE}::test_a_violation_is_explained_in_one_sentence[again]",),
    ),
    Mutation(
        name="read committed forgets in which order a transaction read",
        module="pipeline/auditing/isolation.py",
        right="at if level == 0 else begin[txn + 1]",
        wrong="begin[txn + 1]",
        tests=(f"{ISOLATION}::test_anomalies_tell_the_levels_apart[fractured read]",),
    ),
    Mutation(
        name="versions without a known order have one",
        module="pipeline/auditing/checks/serialisable.py",
        right="minlength=objects) > 1), read)",
        wrong="minlength=objects) > 9), read)",
        tests=(f"{ISOLATION}::test_registers_do_not_tell_the_order_of_versions",),
    ),
    Mutation(
        name="what nobody read of a list is not known to come after it",
        module="pipeline/importing/versions.py",
        right="[version] if end is None else [end, version]",
        wrong="[version]",
        tests=(f"{ISOLATION}::test_anomalies_tell_the_levels_apart[appends that nobody read]",),
    ),
    Mutation(
        name="whatever leads to a component belongs to it",
        module="pipeline/auditing/cycles.py",
        right="elif on_stack[following] and number[following] < low[node]:",
        wrong="elif number[following] < low[node]:",
        tests=(f"{SERIALISABLE}::test_counts_equal_brute_force[True]",),
    ),
    Mutation(
        name="of the requests of an operation only the last comes before what conflicts with them",
        module="pipeline/auditing/conflicts.py",
        right="            if gathered[own] >= 0:\n",
        wrong="            if False:\n",
        tests=(f"{SIGNIFICANT}::test_counts_equal_brute_force",),
    ),
    Mutation(
        name="only conflicts with requests of the same operation must be in the order of sending",
        module="pipeline/auditing/conflicts.py",
        right="if latest[other] > rank[index] and conflicts[kind[destination], own, other]:",
        wrong="if other == own and latest[other] > rank[index] and conflicts[kind[destination], own, other]:",
        tests=(f"{SIGNIFICANT}::test_counts_equal_brute_force",),
    ),
    Mutation(
        name="requests that were sent at one time have one place in the order of sending",
        module="pipeline/auditing/calls.py",
        right="ranks: np.ndarray = sent * members + origin[messages]",
        wrong="ranks: np.ndarray = sent * members",
        tests=(f"{SIGNIFICANT}::test_counts_equal_brute_force",),
    ),
    Mutation(
        name="who comes back under another incarnation goes on from its view",
        module="pipeline/auditing/view_history.py",
        right="current is not None and current.incarnation == incarnation",
        wrong="current is not None",
        tests=(f"{VIEWS}::test_counts_equal_brute_force",),
    ),
    Mutation(
        name="what only an excluded member delivered is part of the group's history",
        module="pipeline/auditing/sessions.py",
        right="return np.append(history.bound(), True)",
        wrong="return np.append(history.bound() | True, True)",
        tests=(
            f"{VIEWS}::test_what_only_an_excluded_member_delivered_may_be_sent_again",
            f"{VIEWS}::test_counts_equal_brute_force",
        ),
    ),
    Mutation(
        name="what a restart undid may not be delivered again",
        module="pipeline/auditing/view_history.py",
        right="history.forgotten[undone] = True",
        wrong="history.forgotten[undone] = False",
        tests=(f"{VIEWS}::test_a_restarted_member_may_deliver_again_what_it_forgot_and_nothing_else",),
    ),
    Mutation(
        name="who is excluded has to deliver what the others do",
        module="pipeline/auditing/in_views.py",
        right="receivers[at] |= bound",
        wrong="receivers[at] |= True",
        tests=(f"{VIEWS}::test_who_is_excluded_need_not_deliver_what_follows_and_who_joins_what_went_before",),
    ),
    Mutation(
        name="a message of an earlier view is still missing in a later one",
        module="pipeline/auditing/kernel.py",
        right="messages.in_view[row] < state.in_view[process]",
        wrong="messages.in_view[row] > state.in_view[process]",
        tests=(f"{VIEWS}::test_counts_equal_brute_force",),
    ),
    Mutation(
        name="behind a boundary, who is excluded has to deliver what the others do",
        module="pipeline/auditing/boundaries.py",
        right="receiving = correct & bound_to(in_flight.in_view, bound.receivers)",
        wrong="receiving = correct & (in_flight.in_view[:, None] > -2)",
        tests=(f"{VIEWS}::test_segments_come_to_the_same_counts_and_first_instances",),
    ),
    Mutation(
        name="edges that go back in the order of commits settle it",
        module="pipeline/auditing/transaction_pieces.py",
        right="self.apart and min(self.backward) == 0",
        wrong="self.apart",
        tests=(f"{PIECES}::test_the_verdict_is_the_same_for_every_number_of_pieces",),
    ),
    Mutation(
        name="what one task can just hold is judged in pieces",
        module="pipeline/auditing/transaction_pieces.py",
        right="return 1 if rows <= ROWS_AT_ONCE else",
        wrong="return 1 if rows < ROWS_AT_ONCE else",
        tests=(f"{PIECES}::test_what_one_task_can_hold_is_not_judged_in_pieces",),
    ),
    Mutation(
        name="pieces are judged apart though a message is about objects of two",
        module="pipeline/auditing/transaction_pieces.py",
        right="apart and _are_about_one(np.concatenate(named))",
        wrong="apart",
        tests=(f"{PIECES}::test_a_message_that_is_about_two_objects_leaves_it_to_one_task",),
    ),
    Mutation(
        name="how transactions ended is judged by every piece",
        module="pipeline/auditing/checks/serialisable.py",
        right="find_wrong(rows, history, ends=first)",
        wrong="find_wrong(rows, history, ends=True)",
        tests=(f"{PIECES}::test_pieces_that_settle_it_say_what_one_task_says",),
    ),
    Mutation(
        name="an order explains a read though there is a later version before it",
        module="pipeline/auditing/isolation_pieces.py",
        right="none | (before != place(write))",
        wrong="none | (before < place(write))",
        tests=(f"{PIECES}::test_an_order_explains_sessions_and_reads_of_the_last_version",),
    ),
    Mutation(
        name="an order explains sessions that go back in it",
        module="pipeline/auditing/isolation_pieces.py",
        right="_out_of_session(piece, history, ranks) + _not_the_last",
        wrong="_not_the_last",
        tests=(f"{PIECES}::test_an_order_explains_sessions_and_reads_of_the_last_version",),
    ),
    Mutation(
        name="the shortest cycle is searched only from where an edge goes far back",
        module="pipeline/auditing/cycles.py",
        right="rank[first] >= rank[second]",
        wrong="rank[first] > rank[second] + 1",
        tests=("tests/audit/test_cycles.py::test_a_cycle_of_neighbours_is_found_in_any_order_of_the_nodes",),
    ),
    Mutation(
        name="what is delivered late is judged in segments",
        module="pipeline/auditing/call_segments.py",
        right="if delivered[event] and not 0 <= times[event] - sent[message[event]] <= reach:",
        wrong="if False:",
        tests=(f"{CALL_SEGMENTS}::test_what_is_delivered_late_leaves_it_to_one_task",),
    ),
    Mutation(
        name="an instance that began long before a segment is not missed there",
        module="pipeline/auditing/call_segments.py",
        right="if what[event] == SEND_RESPONSE and not 0 <= times[event] - began[instance[event]] <= reach:",
        wrong="if False:",
        tests=(f"{CALL_SEGMENTS}::test_an_instance_that_lasts_long_leaves_it_to_one_task",),
    ),
    Mutation(
        name="segments do not compare how processes number their messages",
        module="pipeline/auditing/call_segments.py",
        right="(self.fits and self._is_numbered())",
        wrong="self.fits",
        tests=(f"{CALL_SEGMENTS}::test_messages_that_are_not_numbered_from_0_on_leave_it_to_one_task",),
    ),
    Mutation(
        name="a segment judges what is beside it, too",
        module="pipeline/auditing/significance.py",
        right="if top < 0 or not own[index]:",
        wrong="if top < 0:",
        tests=(f"{CALL_SEGMENTS}::test_segments_that_settle_it_say_what_one_task_says",),
    ),
    Mutation(
        name="a segment is read with what happens right beside it alone",
        module="pipeline/auditing/call_segments.py",
        right="_SIDE = 4\n",
        wrong="_SIDE = 0\n",
        tests=(f"{CALL_SEGMENTS}::test_segments_that_settle_it_say_what_one_task_says",),
    ),
]
