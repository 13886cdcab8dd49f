"""Logs of other systems: what is an event, what follows what, and what can be decided of it."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

MANY = "tests/importing/test_many_executions.py"
FOLLOWING = "tests/importing/test_following.py"
STREAM_FOLLOWING = "tests/ordering/test_stream_following.py"
FORMATS = "tests/importing/test_formats.py"
CHANGES = "tests/ordering/test_change_streams.py"
STREAM = "tests/ordering/test_stream_operator.py"

MUTATIONS = [
    Mutation(
        name="messages without destinations are taken for messages to those that delivered them",
        module="pipeline/auditing/destinations.py",
        right="messages = int((correct[process[sends[unaddressed]]] | reached).sum())",
        wrong="messages = 0",
        tests=("tests/audit/test_spark.py::test_without_destinations_only_agreement_is_undecided",),
    ),
    Mutation(
        name="events in a circle go on waiting although they were set apart",
        module="pipeline/ordering/stream/causal.py",
        right="        leaving[staying[found]] = True\n",
        wrong="",
        tests=(f"{STREAM}::test_events_in_a_circle_are_set_apart_with_the_circle_and_others_go_on",),
    ),
    Mutation(
        name="a delivery that is only implied is an event",
        module="pipeline/causality/segments.py",
        right="real = ~self.events.implied[block.event]",
        wrong="real = self.events.implied[block.event] >= 0",
        tests=(f"{FORMATS}::test_deliveries_that_are_only_implied_are_no_events",),
    ),
    Mutation(
        name="an event keeps its time although it follows a later one",
        module="pipeline/causes.py",
        right="            time[effect] = max(time[effect], time[event])\n",
        wrong="",
        tests=(f"{FOLLOWING}::test_columns_of_spans_are_found_by_their_usual_names",),
    ),
    Mutation(
        name="a host is told again what it knows",
        module="pipeline/causes.py",
        right="if source != own and known[own, source] <= number[cause]:",
        wrong="if source != own:",
        tests=(f"{FOLLOWING}::test_two_children_in_one_service_are_no_repeated_delivery",),
    ),
    Mutation(
        name="an event goes on in a lane whose last event it does not follow",
        module="pipeline/causes.py",
        right="while chosen >= 0 and column[chosen] >= 0 and own[column[chosen]] != count[column[chosen]]:",
        wrong="while chosen >= 0 and column[chosen] >= 0 and own[column[chosen]] == 0:",
        tests=(f"{FOLLOWING}::test_in_lanes_exactly_what_is_said_is_ordered_though_hosts_are_named",),
    ),
    Mutation(
        name="what an event learned from all but its last cause is forgotten",
        module="pipeline/causes.py",
        right="own[other] = max(own[other], vector[source, other])",
        wrong="own[other] = vector[source, other]",
        tests=(f"{FOLLOWING}::test_an_event_follows_what_any_of_its_causes_follows",),
    ),
    Mutation(
        name="an execution has the lanes of the one before",
        module="pipeline/causes.py",
        right="                column[used[at]] = -1\n",
        wrong="                pass\n",
        tests=(f"{FOLLOWING}::test_executions_share_the_lanes_of_their_hosts",),
    ),
    Mutation(
        name="positions that a log states are taken for times",
        module="pipeline/importing/arranging.py",
        right="graph.follows and not graph.placed",
        wrong="graph.follows",
        tests=(f"{FOLLOWING}::test_positions_that_the_log_states_order_the_events_of_a_host",),
    ),
    Mutation(
        name="an event goes on in the lane of another host",
        module="pipeline/causes.py",
        right="if last[causes[at]] and host[causes[at]] == host[event]:",
        wrong="if last[causes[at]]:",
        tests=(f"{FOLLOWING}::test_in_lanes_exactly_what_is_said_is_ordered_though_hosts_are_named",),
    ),
    Mutation(
        name="an event of a stream does not wait for one that it follows and that has not arrived",
        module="pipeline/ordering/stream/following.py",
        right="blocked = links.lacking if wait else links.lacking[:0]",
        wrong="blocked = links.lacking[:0]",
        tests=(f"{STREAM_FOLLOWING}::test_random_histories_leave_as_plain_python_says",),
    ),
    Mutation(
        name="what has left a stream is only looked for in the latest names",
        module="pipeline/ordering/stream/departed.py",
        right="    for file in files:\n",
        wrong="    for file in files[-1:]:\n",
        tests=(f"{STREAM_FOLLOWING}::test_what_has_left_is_known_in_whatever_files_it_is",),
    ),
    Mutation(
        name="sources before the one that is still in a transaction give their part of it away",
        module="pipeline/ordering/stream/frontier.py",
        right="running.first, 0 if together else source)",
        wrong="running.first, source)",
        tests=(f"{CHANGES}::test_transactions_leave_whole_as_soon_as_every_source_is_beyond_them",),
    ),
    Mutation(
        name="a source that was not waited for may bring what should have left",
        module="pipeline/ordering/stream/frontier.py",
        right="if transaction is None or transaction.first < clock:",
        wrong="if transaction is None:",
        tests=(f"{CHANGES}::test_a_silent_source_is_not_waited_for_and_is_late_if_it_comes_back",),
    ),
    Mutation(
        name="executions that share a run are mixed by time",
        module="pipeline/causes.py",
        right="    if execution.any():\n",
        wrong="    if len(execution) < 0:\n",
        tests=(f"{MANY}::test_what_happened_before_what_in_an_execution_is_the_same",),
    ),
    Mutation(
        name="a name means an event of any execution that shares the run",
        module="pipeline/fingerprints.py",
        right="np.int64(execution[row])",
        wrong="np.int64(0)",
        tests=(f"{MANY}::test_what_happened_before_what_in_an_execution_is_the_same",),
    ),
    Mutation(
        name="of events at the same time, an effect may come before its cause",
        module="pipeline/causes.py",
        right="        order[among] = those[np.lexsort((depth[those], group))]\n",
        wrong="        order[among] = those\n",
        tests=(f"{FOLLOWING}::test_equal_times_are_no_causes",),
    ),
    Mutation(
        name="a name that was logged first elsewhere is its last sender's",
        module="pipeline/importing/joining.py",
        right="chosen = order[np.lexsort((row[order], elsewhere, group))[starts]]",
        wrong="chosen = order[np.lexsort((row[order], ~elsewhere, group))[starts]]",
        tests=(f"{FOLLOWING}::test_of_several_events_with_a_name_the_first_is_meant",),
    ),
    Mutation(
        name="a version that nobody read before it was written may come before the initial state",
        module="pipeline/importing/versions.py",
        right="version not in placed and len(sequences) < _BRANCHES_MAX",
        wrong="version in placed",
        tests=("tests/audit/test_isolation.py::test_all_versions_of_a_register_come_after_its_initial_state",),
    ),
    Mutation(
        name="a clock is compared with that of the execution before",
        module="pipeline/importing/gathering.py",
        right="        if begins[row]:\n            last[:] = 0\n",
        wrong="",
        tests=(f"{MANY}::test_vector_clocks_begin_anew_in_every_execution",),
    ),
    Mutation(
        name="what an execution lacks is missed in those that follow it in the run",
        module="pipeline/auditing/in_views.py",
        right='(np.searchsorted(begins, events.lamport, side="right") - 1).astype(np.int32)',
        wrong="np.zeros(len(events.lamport), np.int32)",
        tests=(f"{MANY}::test_what_an_execution_lacks_is_not_missed_in_the_next",),
    ),
    Mutation(
        name="whoever hears of a match does not know of it",
        module="pipeline/causality/each.py",
        right="            heard[process] = True\n        if hit[row]:",
        wrong="            heard[process] = False\n        if hit[row]:",
        tests=(f"{MANY}::test_each_execution_is_asked_as_it_would_be_by_itself",),
    ),
    Mutation(
        name="an entry of a clock is a cause, though another accounts for it",
        module="pipeline/importing/clocks.py",
        right="at[other] >= 0 and known >= count[at[other]]",
        wrong="at[other] >= 0 and known > count[at[other]]",
        tests=(f"{FORMATS}::test_an_entry_that_another_accounts_for_is_no_cause",),
    ),
    Mutation(
        name="an entry that a clock has twice is read as the last",
        module="pipeline/importing/clock_texts.py",
        right="code == NAMES_MAX or last[code] == row or",
        wrong="code == NAMES_MAX or",
        tests=("tests/importing/test_compiled_reading.py::test_what_no_clock_is_or_an_unusual_one_is_left_to_the_parser",),
    ),
    Mutation(
        name="a clock does not end with two braces",
        module="pipeline/importing/layouts.py",
        right="        if data[end - 1] == _CLOSE:\n            return end\n        end -= 1\n",
        wrong="        if data[end - 1] == _CLOSE and data[end - 2] != _CLOSE:\n            return end\n        end -= 1\n",
        tests=("tests/importing/test_compiled_reading.py::test_a_compiled_search_finds_what_re2_finds",),
    ),
]
