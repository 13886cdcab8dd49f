"""Groups that change: what members keep for each other, how processes come in, and how a group ends.

The second half of the ablations of the specification; the first is in `view_changes.py`.
"""

from __future__ import annotations

from tests.mutants.mutation import Mutation

SCENARIOS = "tests/views/test_scenarios.py"
KEEPING = "tests/views/test_keeping.py"
COMING_IN = "tests/views/test_coming_in.py"
CLOSING = "tests/views/test_closing.py"
REGRESSIONS = "tests/views/test_regressions.py"

KEEPING_FOR_OTHERS = [
    Mutation(
        name="a message is delivered before a majority holds it",
        module="views/ordering.py",
        right="if self._uniform and not self.knowledge.is_safe(run.origin, run.first + run.count):",
        wrong="if False:",
        tests=(f"{SCENARIOS}::test_uniform_gate",),
    ),
    Mutation(
        name="a member that is between two views says what it holds",
        module="views/member.py",
        right='        known = membership.ordering.known() if core.mode == "normal" else None\n',
        wrong="        known = membership.ordering.known()\n",
        tests=(f"{KEEPING}::test_have_frozen",),
    ),
    Mutation(
        name="what most have delivered is kept no more",
        module="views/knowledge.py",
        right="map(min, *delivered) if",
        wrong="map(lambda *rows: sorted(rows)[(len(rows) - 1) // 2], *delivered) if",
        tests=(f"{KEEPING}::test_trim_quorum",),
    ),
    Mutation(
        name="what all hold takes no room any more",
        module="views/knowledge.py",
        right="min([row[origin] for row in self.delivered])",
        wrong="min([row[origin] for row in self.held])",
        tests=(f"{KEEPING}::test_what_is_held_and_not_delivered_takes_room",),
    ),
    Mutation(
        name="what a sender knows to be delivered is not believed",
        module="views/knowledge.py",
        right="            self._floor[origin] = floor\n",
        wrong="            pass\n",
        tests=(f"{KEEPING}::test_floor",),
    ),
    Mutation(
        name="a member sends without regard to what others have room for",
        module="views/ordering.py",
        right='core.mode == "normal" and self.has_room():',
        wrong='core.mode == "normal":',
        tests=(f"{KEEPING}::test_no_more_is_sent_than_others_have_room_for",),
    ),
    Mutation(
        name="nobody is ever to blame for what does not move",
        module="views/member.py",
        right="        return {name for each in found for name in each.waits_for}\n",
        wrong="        return set()\n",
        tests=(
            f"{KEEPING}::TestWhoHoldsAMemberUp::test_somebody_whose_clock_is_missing",
            f"{KEEPING}::TestWhoHoldsAMemberUp::test_those_who_have_not_said_that_they_hold_it",
            f"{KEEPING}::TestWhoHoldsAMemberUp::test_somebody_who_has_not_delivered_what_fills_the_window",
        ),
    ),
    Mutation(
        name="a member uses times that it has given away",
        module="protocols/single_phase/protocol.py",
        right="        self.clocks[self.me] += self.options.lookahead\n        clock = self.clocks[self.me]\n",
        wrong="        clock = self.clocks[self.me] + self.options.lookahead\n",
        tests=(f"{KEEPING}::test_times_that_were_given_away_are_not_used",),
    ),
    Mutation(
        name="what is left of a view is ordered by ranks that do not rotate",
        module="protocols/single_phase/protocol.py",
        right="return remainder(packets, delivered, self.members, rotating=self._rotating, unit=self._unit)",
        wrong="return remainder(packets, delivered, self.members, rotating=False, unit=self._unit)",
        tests=(f"{KEEPING}::test_what_is_left_of_a_view_comes_in_the_order_of_rotating_ranks",),
    ),
]

COMING = [
    Mutation(
        name="whoever joins begins with what was delivered in its view, too",
        module="views/previous_view.py",
        right="tuple(entry for entry in entries if entry.epoch < self._core.view.epoch)",
        wrong="tuple(entries)",
        tests=(f"{COMING_IN}::test_whoever_joins_begins_with_what_was_delivered_before_its_view",),
    ),
    Mutation(
        name="whoever catches up gets what a later view may be without",
        module="views/catching_up.py",
        right="""\
        return core.settings.uniform or entry.epoch < core.view.epoch or self._is_held_by_a_quorum(entry.rank, entry.run.end)
""",
        wrong="""\
        return core is not None
""",
        tests=(f"{COMING_IN}::test_feed_all",),
    ),
    Mutation(
        name="a snapshot passes for one of the present",
        module="views/catching_up.py",
        right="        position, state, table = self._pinned\n",
        wrong="        _, state, table = self._pinned\n        position = core.position\n",
        tests=(f"{COMING_IN}::test_a_state_is_that_of_its_position",),
    ),
    Mutation(
        name="parts of two members' snapshots are put together",
        module="views/catching_up.py",
        right="            self._donor = donors[self._turn % len(donors)]\n            self._begin_again()\n",
        wrong="            self._donor = donors[self._turn % len(donors)]\n",
        tests=(f"{COMING_IN}::test_parts_of_two_snapshots_make_no_state",),
    ),
    Mutation(
        name="whoever is left out goes on from all that it has delivered itself",
        module="views/membership.py",
        right="Learner(core, has_state=core.settings.uniform and core.settings.total)",
        wrong="Learner(core, has_state=True)",
        tests=(f"{SCENARIOS}::test_rejoin_boundary", f"{COMING_IN}::test_rejoin_log"),
    ),
    Mutation(
        name="what is left of a history passes for all of it",
        module="views/history.py",
        right="if position.epoch == first.epoch and any(map(int.__lt__, position.delivered, first.base)):",
        wrong="if position.epoch == first.epoch and False:",
        tests=(f"{COMING_IN}::test_gone",),
    ),
    Mutation(
        name="whoever joins begins with what it has, whatever it had when it asked",
        module="views/catching_up.py",
        right="        return self._has_state and self._core.position.covers(position)\n",
        wrong="        return self._has_state and position is not None\n",
        tests=(f"{REGRESSIONS}::test_whoever_was_given_an_older_state_since_it_asked_asks_anew",),
    ),
    Mutation(
        name="whoever is behind says that what it does not know yet is gone",
        module="views/catching_up.py",
        right="        if packet.since.epoch > core.view.epoch:\n",
        wrong="        if packet.since.epoch < 0:\n",
        tests=(f"{REGRESSIONS}::test_whoever_is_behind_does_not_send_anybody_back",),
    ),
    Mutation(
        name="a snapshot outlives the exclusion of its member",
        module="views/membership.py",
        right="        self.donor.forget()\n",
        wrong="",
        tests=(f"{REGRESSIONS}::test_a_snapshot_of_a_member_that_was_left_out_is_given_to_nobody",),
    ),
    Mutation(
        name="a snapshot that comes after its member was left out counts",
        module="views/catching_up.py",
        right="        self._is_void = self._wanted is not None\n",
        wrong="",
        tests=(f"{REGRESSIONS}::test_a_snapshot_that_comes_after_its_member_was_left_out_is_given_to_nobody",),
    ),
    Mutation(
        name="a founder founds whenever it is started",
        module="views/membership.py",
        right="        founds = founds and membership.core.view.rank(me.name) is not None\n",
        wrong="        founds = membership.core.view.rank(me.name) is not None\n",
        tests=(f"{SCENARIOS}::test_founder_twice",),
    ),
    Mutation(
        name="the founding view carries messages",
        module="views/membership.py",
        right="""\
        if founds:
            membership.core.mode = "frozen"
""",
        wrong="""\
        if founds:
            membership.core.mode = "normal"
""",
        tests=(f"{COMING_IN}::test_the_founding_view_carries_no_messages",),
    ),
]

ENDING = [
    Mutation(
        name="a group ends with something unsent",
        module="views/ballots.py",
        right="all(report.drained and not report.leaving for report in reports.values())",
        wrong="all(report.closing and not report.leaving for report in reports.values())",
        tests=(f"{CLOSING}::test_a_group_ends_when_everything_is_sent",),
    ),
    Mutation(
        name="whoever has not heard that the group closes has sent everything, too",
        module="views/agreement.py",
        right="core.closing and core.operations.is_drained()\n        return Report",
        wrong="core.operations.is_drained()\n        return Report",
        tests=(f"{SCENARIOS}::test_close_unaware", f"{CLOSING}::test_close_aware"),
    ),
    Mutation(
        name="a group ends without those who cannot be reached",
        module="views/ballots.py",
        right="    everybody = len(reports) == len(view.members)\n",
        wrong="    everybody = True\n",
        tests=(f"{CLOSING}::test_close_all",),
    ),
    Mutation(
        name="a member that has ended answers no more",
        module="views/membership.py",
        right='        core.mode = "closed"\n',
        wrong='        core.mode = "closed"\n        self.previous_view.take(None)\n',
        tests=(f"{CLOSING}::test_whoever_has_ended_answers_still",),
    ),
    Mutation(
        name="a read asks nobody",
        module="views/member.py",
        right="        ordering.reads.begin(self._rounds, list(reads))\n",
        wrong="        for token in reads:\n            core.read_is_ready(token)\n",
        tests=(f"{SCENARIOS}::test_read_minority",),
    ),
    Mutation(
        name="a read needs only what the reader holds",
        module="views/reads.py",
        right="        if self._view.is_quorum(asked.answers, self._tie):\n",
        wrong="        if asked.answers:\n",
        tests=(f"{SCENARIOS}::test_read_minority",),
    ),
    Mutation(
        name="to a read, members say what they have delivered",
        module="views/reception.py",
        right="Held(packet.epoch, packet.token, tuple(ordering.unstable.count))",
        wrong="Held(packet.epoch, packet.token, tuple(ordering.delivered))",
        tests=(f"{SCENARIOS}::test_read_held",),
    ),
    Mutation(
        name="members between two views answer reads",
        module="views/reception.py",
        right='        if core.mode != "normal":\n            return\n',
        wrong='        if core.mode != "normal" and not isinstance(packet, AskHeld):\n            return\n',
        tests=(f"{SCENARIOS}::test_read_minority",),
    ),
]

MUTATIONS = [*KEEPING_FOR_OTHERS, *COMING, *ENDING]
