"""Groups that change: how a view ends, how the next one begins, and what must be durable for that.

These are the ablations of the specification, row by row of its two tables, with those in `view_members.py`. Where one rule is
in two rows, it is planted once. That links number what they carry is planted among the live groups, where the links are.
"""

from __future__ import annotations

from tests.mutants.mutation import Mutation

SCENARIOS = "tests/views/test_scenarios.py"
CHANGING = "tests/views/test_changing.py"
FORGETTING = "tests/views/test_forgetting.py"
KEEPING = "tests/views/test_keeping.py"
COMING_IN = "tests/views/test_coming_in.py"
REGRESSIONS = "tests/views/test_regressions.py"
ALL_SCHEDULES = "tests/views/test_all_schedules.py"

_PARTED = """\
        replace = __import__("msgspec").structs.replace
        runs = tuple(
            replace(one, packet=replace(one.packet, run=one.run.part(step, step + 1)), number=one.number + step)
            for one in runs
            for step in range(one.run.count)
        )
"""

AGREEING = [
    Mutation(
        name="whoever promises goes on as before",
        module="views/agreement.py",
        right="""\
        self.freeze()
        self.promised = ballot
        self._core.save(Promised(ballot, self._core.closing))
""",
        wrong="""\
        self.promised = ballot
        self._core.save(Promised(ballot, self._core.closing))
""",
        tests=(f"{CHANGING}::test_freeze",),
        swarms=(ALL_SCHEDULES,),
    ),
    Mutation(
        name="a view goes on when a ballot comes to nothing",
        module="views/member.py",
        right="                agreement.campaign = None\n",
        wrong='                agreement.campaign = None\n                core.mode = "normal"\n',
        tests=(f"{CHANGING}::test_a_ballot_that_comes_to_nothing_does_not_thaw_its_leader",),
    ),
    Mutation(
        name="a view ends with what everybody reports",
        module="views/ballots.py",
        right="return [max(counts) for counts in",
        wrong="return [min(counts) for counts in",
        tests=(f"{CHANGING}::test_the_cut_has_what_anybody_reports",),
        swarms=(ALL_SCHEDULES,),
    ),
    Mutation(
        name="a view ends with what its last leader reports",
        module="views/ballots.py",
        right="    cut = tuple(campaign.target())\n",
        wrong="    cut = reports[leader].held\n",
        tests=(f"{CHANGING}::test_the_cut_has_what_anybody_reports",),
    ),
    Mutation(
        name="what the leader lacks is not fetched, but cut off",
        module="views/ballots.py",
        right="(promise.report.held for promise in self.promises.values())",
        wrong="(promise.report.held for promise in self.promises.values() if promise is self.promises[self.ballot.name])",
        tests=(f"{CHANGING}::test_the_cut_has_what_anybody_reports",),
    ),
    Mutation(
        name="those who report nothing are in the next view",
        module="views/ballots.py",
        right="""\
    staying = [member for member in view.members if member.name in reports and not reports[member.name].leaving]
    if not staying:
        staying = [member for member in view.members if member.name == leader]
    members = [_as_reported(member, reports[member.name]) for member in staying]
""",
        wrong="""\
    members = list(view.members)
""",
        tests=(f"{CHANGING}::test_whoever_reports_nothing_is_not_in_the_next_view",),
    ),
    Mutation(
        name="an effect may be in a cut without its cause",
        module="views/ballots.py",
        right="    if causal:\n",
        wrong="    if not causal:\n",
        tests=(f"{SCENARIOS}::test_causal_hole", f"{SCENARIOS}::test_causal_hole_runs"),
    ),
    Mutation(
        name="what may have been decided already is not proposed again",
        module="views/ballots.py",
        right="""\
    if accepted is not None:
        return accepted.value
    reports""",
        wrong="""\
    reports""",
        tests=(f"{CHANGING}::test_use_accepted",),
        swarms=(ALL_SCHEDULES,),
    ),
    Mutation(
        name="a member votes in spite of a later promise",
        module="views/agreement.py",
        right="        if packet.ballot < self.promised:\n",
        wrong="        if packet.ballot < self.promised and packet.runs:\n",
        tests=(f"{CHANGING}::test_accept_stale",),
    ),
    Mutation(
        name="a member votes before it holds the cut",
        module="views/agreement.py",
        right="""\
        self.keep(packet.runs)
        if packet.ballot < self.promised:
            core.send(Refuse(core.view.epoch, self.promised.round), (name,))
        elif self._ordering.unstable.holds(packet.value.cut):
""",
        wrong="""\
        if packet.ballot < self.promised:
            core.send(Refuse(core.view.epoch, self.promised.round), (name,))
        else:
""",
        tests=(f"{SCENARIOS}::test_fill_before_accept",),
        swarms=(ALL_SCHEDULES,),
    ),
    Mutation(
        name="a member that was handed the cut looks whether it holds it for nothing",
        module="views/agreement.py",
        right="        elif self._ordering.unstable.holds(packet.value.cut):\n",
        wrong="        else:\n",
        tests=(f"{SCENARIOS}::test_fill_before_accept", f"{SCENARIOS}::test_pull_second_holder"),
        harmless="""\
The leader holds the cut when it proposes it, and hands each member all that lies between what that member reported and the cut.
A member never holds less than it reported. So a correct leader never asks for a vote that the test refuses: it is there so that
a vote can be believed whoever asked for it.""",
    ),
    Mutation(
        name="half of the members are a majority",
        module="views/view.py",
        right="return 2 * weight > total or",
        wrong="return 2 * weight >= total or",
        tests=(f"{SCENARIOS}::test_two_members",),
    ),
    Mutation(
        name="anybody is a majority",
        module="views/view.py",
        right="return 2 * weight > total or",
        wrong="return weight > 0 or",
        tests=(f"{SCENARIOS}::test_two_members",),
    ),
    Mutation(
        name="a ballot goes on without the promise of one who falls silent, though the others are no majority",
        module="views/agreement.py",
        right="""\
        if campaign.is_backed():
            self.pull()
        else:
            self.campaign = None
""",
        wrong="""\
        self.pull()
""",
        tests=(f"{CHANGING}::test_pull_noquorum",),
    ),
    Mutation(
        name="runs that are asked for come one message at a time",
        module="views/agreement.py",
        right="        self._core.send(Fill(packet.epoch, runs), (name,))\n",
        wrong=_PARTED + "        self._core.send(Fill(packet.epoch, runs), (name,))\n",
        tests=(f"{KEEPING}::test_split_fill",),
    ),
    Mutation(
        name="runs that a member lacks come to it one message at a time",
        module="views/agreement.py",
        right="        self._core.send(Accept(self._core.view.epoch, promise.ballot, value, runs), (name,))\n",
        wrong=_PARTED + "        self._core.send(Accept(self._core.view.epoch, promise.ballot, value, runs), (name,))\n",
        tests=(f"{KEEPING}::test_split_fill",),
    ),
]

GOING_ON = [
    Mutation(
        name="what comes before its view begins is lost",
        module="views/member.py",
        right="            self._future.append((name, incarnation, packet))\n",
        wrong="            pass\n",
        tests=(f"{CHANGING}::test_what_comes_before_a_view_begins_waits_for_it",),
    ),
    Mutation(
        name="what is left of an earlier view is taken for this one",
        module="views/reception.py",
        right="            case _ if packet.epoch == core.view.epoch:\n",
        wrong="            case _ if packet.epoch <= core.view.epoch:\n",
        tests=(f"{CHANGING}::test_what_is_left_of_an_earlier_view_is_dropped",),
    ),
    Mutation(
        name="how a view ended is forgotten when one other has gone on",
        module="views/previous_view.py",
        right="if self.is_of(view.epoch - 1) and self.installed.issuperset(view.names()):\n",
        wrong="if self.is_of(view.epoch - 1) and len(self.installed) > 1:\n",
        tests=(f"{CHANGING}::test_how_a_view_ended_is_kept_until_all_have_gone_on",),
    ),
    Mutation(
        name="whoever is heard of in a view is there after a restart, too",
        module="views/reception.py",
        right="        core, ordering = self.core, self.membership.ordering\n        if core.mode",
        wrong="""\
        core, ordering = self.core, self.membership.ordering
        if isinstance(packet, Status):
            self.membership.previous_view.has_installed(name, packet.epoch)
        if core.mode""",
        tests=(f"{REGRESSIONS}::test_how_a_view_ended_is_known_until_the_next_one_is_durable_at_all",),
    ),
    Mutation(
        name="whoever is in no view any more forgets how its last one ended",
        module="views/membership.py",
        right="            self.previous_view.keep(core.view, value, self.ordering.unstable)\n",
        wrong="            pass\n",
        tests=(f"{CHANGING}::test_whoever_leaves_stays_until_others_know",),
    ),
    Mutation(
        name="whoever was told only of a later view takes part in its old one again after a restart",
        module="views/restarting.py",
        right="found.excluded, found.ended = True, record.value",
        wrong="found.excluded, found.ended = record.value is not None, record.value",
        tests=(
            f"{REGRESSIONS}::test_whoever_was_excluded_and_has_caught_up_does_not_take_part_in_its_old_view_after_a_restart",
        ),
    ),
    Mutation(
        name="whoever joins is not told how the view before ended",
        module="views/previous_view.py",
        right="since, previous = joiner.position, self.packed()",
        wrong="since, previous = joiner.position, None",
        tests=(f"{CHANGING}::test_whoever_joins_can_say_how_the_view_before_ended",),
    ),
    Mutation(
        name="a process goes on in a view that names an earlier incarnation of it",
        module="views/membership.py",
        right='        core.mode = "normal" if core.is_myself_in_view() else "frozen"\n',
        wrong='        core.mode = "normal"\n',
        tests=(f"{SCENARIOS}::test_old_incarnation_in_view",),
    ),
    Mutation(
        name="a process that is started again with its journal is the incarnation that it was",
        module="views/membership.py",
        right="Participant(found.name, found.incarnation + 1, found.weight, found.cluster)",
        wrong="Participant(found.name, found.incarnation, found.weight, found.cluster)",
        tests=(f"{SCENARIOS}::test_old_incarnation_in_view",),
    ),
    Mutation(
        name="a process that is started again without a journal is the incarnation that it was",
        module="simulation/membership/hosts.py",
        right="        host.incarnation += 1\n",
        wrong="        host.incarnation = 1\n",
        tests=(f"{COMING_IN}::test_a_process_that_is_started_again_is_another_incarnation",),
    ),
    Mutation(
        name="an incarnation that was in the group may come in again",
        module="views/ballots.py",
        right="        latest[member.name] = max(latest.get(member.name, 0), member.incarnation)\n",
        wrong="        latest.setdefault(member.name, 0)\n",
        tests=(f"{COMING_IN}::test_no_incarnation_comes_in_twice",),
    ),
    Mutation(
        name="only what a member has seen executed is not sent again",
        module="views/core.py",
        right="        number = self.table.get(self.session, 0)\n        if self.operations.settle(number):\n",
        wrong="""\
        number = self.operations.settled if self.mode == "joining" else self.table.get(self.session, 0)
        if self.operations.settle(number):
""",
        tests=(f"{COMING_IN}::test_dedup",),
    ),
    Mutation(
        name="what was not executed is not sent again",
        module="views/operations.py",
        right="        self._sent = self.settled\n",
        wrong="        self._sent = self.last\n",
        tests=(f"{SCENARIOS}::test_two_members",),
    ),
]

DURABLE = [
    Mutation(
        name="a promise is not written down",
        module="views/agreement.py",
        right="        self.promised = ballot\n        self._core.save(Promised(ballot, self._core.closing))\n",
        wrong="        self.promised = ballot\n",
        tests=(f"{SCENARIOS}::test_forgotten_promise",),
    ),
    Mutation(
        name="a promise is given before it is durable",
        module="views/agreement.py",
        right="        core.send_when_durable(promise, (name,))\n",
        wrong="        core.send(promise, (name,))\n",
        tests=(f"{FORGETTING}::test_a_promise_is_durable_before_it_is_given",),
    ),
    Mutation(
        name="a vote is not written down",
        module="views/agreement.py",
        right="self._voted_at = self._core.save(Voted(ballot, value))",
        wrong="self._voted_at = 0",
        tests=(f"{FORGETTING}::test_a_vote_is_remembered",),
    ),
    Mutation(
        name="the leader's own vote counts before it is durable",
        module="views/agreement.py",
        right="if self.accepted.ballot == campaign.ballot and self._core.is_durable(self._voted_at):",
        wrong="if self.accepted.ballot == campaign.ballot:",
        tests=(f"{FORGETTING}::test_the_vote_of_the_leader_counts_when_it_is_durable",),
    ),
    Mutation(
        name="a vote is given before it is durable",
        module="views/agreement.py",
        right="core.send_when_durable(Vote(core.view.epoch, packet.ballot), (name,))",
        wrong="core.send(Vote(core.view.epoch, packet.ballot), (name,))",
        tests=(f"{FORGETTING}::test_a_vote_is_durable_before_it_is_given",),
    ),
    Mutation(
        name="how the last view ended is not written down",
        module="views/membership.py",
        right="core.save(Entered(view, dict(core.table), self.previous_view.packed()))",
        wrong="core.save(Entered(view, dict(core.table), None))",
        tests=(f"{FORGETTING}::test_how_the_last_view_ended_is_remembered",),
    ),
    Mutation(
        name="operations are sent before they are durable",
        module="views/member.py",
        right="            core.operations.written(core.save(Submitted(first, tuple(messages.payloads))))\n",
        wrong="            core.save(Submitted(first, tuple(messages.payloads)))\n            core.operations.may_be_sent()\n",
        tests=(f"{FORGETTING}::test_what_is_not_durable_is_not_sent",),
    ),
    Mutation(
        name="a member says that it holds what is not durable",
        module="views/ordering.py",
        right="""\
        if self._journal:
            self._held_at.append((self._core.written(), origin, count))
        else:
            self.knowledge.came(origin, count)
""",
        wrong="""\
        self.knowledge.came(origin, count)
""",
        tests=(f"{FORGETTING}::test_have_undurable", f"{REGRESSIONS}::test_whoever_sends_holds_it_only_when_it_is_durable"),
    ),
    Mutation(
        name="a member counts itself as one that holds what is not durable",
        module="views/knowledge.py",
        right="""\
            if held[rank][origin] >= count:
                weight += each
                if 2 * weight > self._weight:
                    break
        else:
            if not is_majority(weight, self._weight, self._tie, senior=held[0][origin] >= count):
""",
        wrong="""\
            if held[rank][origin] >= count or rank == self._me:
                weight += each
                if 2 * weight > self._weight:
                    break
        else:
            if not is_majority(weight, self._weight, self._tie, senior=self._me == 0 or held[0][origin] >= count):
""",
        tests=(f"{REGRESSIONS}::test_a_group_of_one_delivers_what_is_durable",),
    ),
]

MUTATIONS = [*AGREEING, *GOING_ON, *DURABLE]
