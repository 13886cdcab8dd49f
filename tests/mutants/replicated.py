"""Replicated objects: what is taken back, what a snapshot shows, what a query sees, who holds a lock."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

TAKING_BACK = "tests/replicated/test_taking_back.py"
FAILED = f"{TAKING_BACK}::test_a_failed_command_leaves_everything_as_it_was"
IN_PLACE = f"{TAKING_BACK}::test_a_value_that_is_changed_in_place_is_as_before_however_the_command_got_it"
TWICE = f"{TAKING_BACK}::test_what_changes_twice_before_its_chunk_is_read_is_shown_as_it_was"
GROUPS = "tests/replicated/test_groups.py"
READY_MADE = "tests/replicated/test_ready_made.py"
SCHEDULES = "tests/replicated/test_schedules.py"

MUTATIONS = [
    Mutation(
        name="a failed command is taken back from its first change to its last",
        module="replicated/ledger.py",
        right="for owner, key, old in reversed(notes):",
        wrong="for owner, key, old in notes:",
        tests=(FAILED,),
    ),
    Mutation(
        name="the last entry of a dictionary may be removed without a note",
        module="replicated/tracked.py",
        right="            self._changing(next(reversed(self)))\n",
        wrong="            pass\n",
        tests=(IN_PLACE,),
    ),
    Mutation(
        name="a command may change all values of a dictionary in place without a note",
        module="replicated/tracked.py",
        right="        self._giving_all()\n        return super().values()",
        wrong="        return super().values()",
        tests=(IN_PLACE,),
    ),
    Mutation(
        name="a snapshot shows the last change before its chunk and not the first after its beginning",
        module="replicated/snapshots.py",
        right="self.entries.setdefault((id(owner), each), value)",
        wrong="self.entries[id(owner), each] = value",
        tests=(TWICE,),
    ),
    Mutation(
        name="a snapshot is not told of the most frequent change",
        module="replicated/tracked.py",
        right="if ledger.notes is None or ledger.watchers:",
        wrong="if ledger.notes is None:",
        tests=(TWICE,),
    ),
    Mutation(
        name="a snapshot need not be complete",
        module="replicated/snapshots.py",
        right="        if not self._ended:\n",
        wrong="        if self._ended and not self._pieces:\n",
        tests=(f"{TAKING_BACK}::test_a_damaged_snapshot_is_refused_and_changes_nothing",),
    ),
    Mutation(
        name="a caller gets a part of the state",
        module="replicated/calls.py",
        right="        if type(result) in _NEVER_CHANGED:\n",
        wrong="        if result is not None:\n",
        tests=(f"{GROUPS}::test_what_a_caller_gets_is_a_copy",),
    ),
    Mutation(
        name="a query is answered by what is here",
        module="live/groups/commands.py",
        right="await self._send(_MARK, _as_it_is)",
        wrong="await asyncio.sleep(0)",
        tests=(f"{SCHEDULES}::test_replicas_are_equal_and_histories_linearisable",),
    ),
    Mutation(
        name="a query that comes while a round is under way shares it",
        module="live/groups/reads.py",
        right="""\
                waiters, self._next = self._next, []
                try:
                    await self._make_round()
""",
        wrong="""\
                waiters = self._next
                try:
                    await self._make_round()
                    self._next = []
""",
        tests=("tests/replicated/test_reads.py::test_a_round_serves_those_who_came_before_it_began_and_no_others",),
    ),
    Mutation(
        name="commands are executed after one that could not be",
        module="live/groups/commands.py",
        right="        if self._over:\n            return\n",
        wrong="        if number < 0:\n            return\n",
        tests=(f"{GROUPS}::test_a_command_that_is_not_declared_everywhere_ends_the_group_and_names_who_sent_it",),
    ),
    Mutation(
        name="the time of commands goes back",
        module="replicated/machine.py",
        right="if at_ns > self.latest_ns:",
        wrong="if at_ns != self.latest_ns:",
        tests=(f"{GROUPS}::test_the_context_says_who_called_and_its_time_never_goes_back",),
    ),
    Mutation(
        name="members whose states differ become a group",
        module="live/settings.py",
        right='"epoch", "state")',
        wrong='"epoch")',
        tests=(f"{GROUPS}::test_members_with_different_states_do_not_become_a_group",),
    ),
    Mutation(
        name="a lock that was released keeps its token",
        module="replicated/leases.py",
        right="self.tokens += 1",
        wrong="self.tokens = max(self.tokens, 1)",
        tests=(f"{READY_MADE}::test_a_lock_that_is_not_renewed_goes_to_the_next_when_its_lease_has_expired",),
    ),
    Mutation(
        name="a lease that has expired can be renewed",
        module="replicated/leases.py",
        right="self.lease.token != token or now >= self.lease.until:",
        wrong="self.lease.token != token:",
        tests=(f"{READY_MADE}::test_a_lock_that_is_not_renewed_goes_to_the_next_when_its_lease_has_expired",),
    ),
    Mutation(
        name="an item whose taker was cancelled is gone",
        module="replicated/containers.py",
        right="lambda items: items and self.put_first(items)",
        wrong="lambda items: items",
        tests=(f"{READY_MADE}::test_an_item_whose_taker_was_cancelled_is_first_again",),
    ),
]
