"""Hierarchies in groups that change: what is passed on, how a view of it ends, and who is in which cluster."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

CLUSTERS = "tests/views/test_clusters.py"
LIVE = "tests/live/dynamic/test_clusters.py"
DESCRIPTION = "tests/hierarchy/test_description.py"
SWARM = "tests/views/test_swarm.py::test_whatever_happens_every_promise_is_kept"
MOVES = f"{CLUSTERS}::test_a_member_that_moves_is_elsewhere_from_the_next_view_on"

MUTATIONS = [
    Mutation(
        name="whoever passes on a message says that it has what the sender has",
        module="views/ordering.py",
        right="passed_on = msgspec.structs.replace(data, packet=effect.packet, known=self._known_to(effect.to))",
        wrong="passed_on = msgspec.structs.replace(data, packet=effect.packet)",
        tests=(f"{CLUSTERS}::test_who_passes_on_a_message_says_what_it_has_itself_and_what_the_sender_said_of_its_own",),
    ),
    Mutation(
        name="the floor of a message that was passed on counts for whoever passed it on",
        module="views/ordering.py",
        right="        self.knowledge.learn_floor(origin, data.floor)\n",
        wrong="        self.knowledge.learn_floor(0, data.floor)\n",
        tests=(f"{CLUSTERS}::test_what_the_sender_knows_to_be_delivered_everywhere_is_kept_for_nobody",),
    ),
    Mutation(
        name="messages that are passed on are taken in any order",
        module="views/ordering.py",
        right="        if run.end > expected if origin == self.rank else run.first != expected:\n",
        wrong="        if run.end > expected if origin == self.rank else run.first < expected:\n",
        tests=(f"{CLUSTERS}::test_what_does_not_follow_on_what_came_of_its_origin_is_refused",),
    ),
    Mutation(
        name="the rest of a view of a hierarchy is delivered member by member",
        module="views/closure.py",
        right="key=lambda data: (sum(data.causes), data.run.origin, data.run.first)",
        wrong="key=lambda data: (data.run.origin, data.run.first)",
        tests=(f"{CLUSTERS}::test_the_rest_of_a_view_is_delivered_with_questions_before_answers",),
        swarms=(f"{SWARM}[clusters, heavy]",),
    ),
    Mutation(
        name="the rest of a view of a hierarchy has what was delivered before",
        module="views/ordering.py",
        right="                if data.run.first >= self.delivered[data.run.origin]:\n",
        wrong="                if data.run.first >= 0:\n",
        tests=(f"{CLUSTERS}::test_the_rest_of_a_view_is_delivered_with_questions_before_answers",),
        swarms=(f"{SWARM}[clusters]",),
    ),
    Mutation(
        name="a packet to some members tells all what is held here",
        module="views/ordering.py",
        right="""\
        known = self.knowledge.mine()
        if to is None:
            self._flow""",
        wrong="""\
        known = self.knowledge.mine()
        if True:
            self._flow""",
        tests=(f"{CLUSTERS}::test_a_witness_that_sends_to_its_cluster_still_tells_the_others_what_it_holds",),
    ),
    Mutation(
        name="the tree of a view does not follow from where its members are",
        module="views/ordering.py",
        right="dict(settings.options), view.clusters())",
        wrong="dict(settings.options))",
        tests=(f"{CLUSTERS}::test_a_message_goes_to_the_members_of_a_cluster_and_only_agents_carry_it_to_another",),
    ),
    Mutation(
        name="a member stays in the cluster that the last view has it in",
        module="views/ballots.py",
        right="member.weight, report.cluster)",
        wrong="member.weight, member.cluster)",
        tests=(MOVES,),
        swarms=(f"{SWARM}[clusters]",),
    ),
    Mutation(
        name="whoever moves waits for a view that comes for another reason",
        module="views/member.py",
        right='core.mode == "frozen" or core.leaving or core.has_moved()',
        wrong='core.mode == "frozen" or core.leaving',
        tests=(MOVES,),
        swarms=(f"{SWARM}[clusters]",),
    ),
    Mutation(
        name="a journal does not say where a member was",
        module="views/restarting.py",
        right="            found.cluster = record.cluster\n",
        wrong="",
        tests=(f"{CLUSTERS}::test_a_process_with_a_journal_is_where_it_was_when_it_is_started_again",),
    ),
    Mutation(
        name="whoever is alone keeps nothing of what it sends",
        module="protocols/clusters/site.py",
        right="        if self.members == 1:\n",
        wrong="        if self.members == 0:\n",
        tests=(f"{CLUSTERS}::test_whoever_is_alone_has_what_it_sent_in_its_journal",),
        swarms=(f"{SWARM}[clusters, journal]",),
    ),
    Mutation(
        name="those behind an agent are blamed with it",
        module="views/relaying.py",
        right="return [one for one in late if not any(protocol.passes(source, one, other) for other in late)]",
        wrong="return list(late)",
        tests=(f"{CLUSTERS}::test_only_the_agent_is_blamed_for_what_a_cluster_behind_it_lacks",),
    ),
    Mutation(
        name="whoever sends by way of itself or its receiver waits for a relay",
        module="protocols/clusters/site.py",
        right="return by not in (source, dest) and self.routes.touches(source, dest, by)",
        wrong="return self.routes.touches(source, dest, by)",
        tests=(f"{CLUSTERS}::test_only_the_agent_is_blamed_for_what_a_cluster_behind_it_lacks",),
    ),
    Mutation(
        name="a relay that takes nothing is not suspected while anything else moves",
        module="views/liveness.py",
        right="        slow |= self._watch_relays(member.slow_relays(), now)\n",
        wrong="        slow |= self._watch_relays(member.slow_relays(), now) if slow else set()\n",
        tests=(f"{LIVE}::test_an_agent_that_reads_nothing_is_excluded_when_others_wait_for_it_and_its_cluster_is_not",),
    ),
    Mutation(
        name="a relay that goes on taking messages is suspected",
        module="views/liveness.py",
        right="name: known[name] if name in known and known[name][0] == count else (count, now)",
        wrong="name: known[name] if name in known else (count, now)",
        tests=(f"{CLUSTERS}::test_a_relay_is_suspected_when_it_takes_nothing_for_long_and_others_wait_for_it",),
    ),
    Mutation(
        name="whoever passes on nothing to anybody is suspected like a relay",
        module="views/relaying.py",
        right="if any(protocol.passes(source, other, one) for other in late)]",
        wrong="if late]",
        tests=(f"{CLUSTERS}::test_a_relay_is_suspected_when_it_takes_nothing_for_long_and_others_wait_for_it",),
    ),
    Mutation(
        name="the last to come is the agent of its cluster",
        module="protocols/hierarchy/description.py",
        right="            sites = [members[0] for members in clusters.values()]\n",
        wrong="            sites = sorted(members[-1] for members in clusters.values())\n",
        tests=(f"{DESCRIPTION}::test_the_first_of_a_cluster_by_name_is_its_agent",),
    ),
    Mutation(
        name="whoever passes on a message has sent it, as its trace says",
        module="trace/membership_recorder.py",
        right="data.epoch == self._epoch and data.run.origin == self._rank:",
        wrong="data.epoch == self._epoch:",
        tests=("tests/trace/test_membership_recorder.py::test_what_a_process_passes_on_it_has_not_sent",),
    ),
]
