"""Logs of other systems: what is an event, what follows what, and what can be decided of it."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

FOLLOWING = "tests/importing/test_following.py"
FORMATS = "tests/importing/test_formats.py"
STREAM = "tests/ordering/test_stream_operator.py"

MUTATIONS = [
    Mutation(
        name="messages without destinations are taken for messages to those that delivered them",
        module="pipeline/auditing/destinations.py",
        right="messages = int((events.dest_count[own[first]] < 0).sum())",
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
]
