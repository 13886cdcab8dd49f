"""Groups of objects: links, stability, queues and vectors."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

GOLDEN = "tests/objects/test_golden.py"
LINKS = "tests/objects/test_links.py"
PACE = "tests/objects/test_pace.py"
SCENARIOS = "tests/objects/test_scenarios.py"
API = "tests/objects/test_api.py"

DEPARTURES = "tests/objects/test_departures.py"
SURVIVING = "tests/objects/test_surviving.py"
CRASHES = f"{DEPARTURES}::test_whoever_crashes_the_others_go_on_in_one_order"

TRACES = "tests/objects/test_survivors_traces.py"

MUTATIONS = [
    Mutation(
        name="logical time does not go with what is told of a lost host",
        module="live/services/object_membership.py",
        right="        self._host.heard(lamport)\n        self._host.act(self._node.install(",
        wrong="        self._host.act(self._node.install(",
        tests=(f"{TRACES}::test_what_one_host_was_told_by_a_lost_one_is_recorded_where_it_came_later",),
    ),
    Mutation(
        name="what came to some of those who go on does not come to the others",
        module="protocols/objects/node.py",
        right="if content.clock > last and self.address in self.departures.destinations(content):",
        wrong="if False:",
        tests=(f"{DEPARTURES}::test_what_one_of_those_who_go_on_has_comes_wherever_it_was_sent",),
        swarms=(CRASHES,),
    ),
    Mutation(
        name="what waits for a gap is not told when its sender goes",
        module="protocols/objects/departures.py",
        right="(*self._kept.get(member, ()), *held)",
        wrong="self._kept.get(member, ())",
        tests=(f"{DEPARTURES}::test_what_one_of_those_who_go_on_has_comes_wherever_it_was_sent",),
    ),
    Mutation(
        name="something is taken from a member after it was told what there is of it",
        module="protocols/objects/calls.py",
        right="        if source in self.departures.fenced:\n",
        wrong="        if source in self.departures.gone:\n",
        tests=(f"{DEPARTURES}::test_from_whoever_is_to_go_nothing_more_is_taken",),
    ),
    Mutation(
        name="nobody waits for the clock of a member that is suspected",
        module="protocols/objects/exchange.py",
        right="for peer, link in self.links.items() if peer != stamp.member)",
        wrong="for peer, link in self.links.items() if peer != stamp.member and peer not in self._suspected)",
        tests=(f"{DEPARTURES}::test_only_a_view_takes_a_silent_member_out_of_what_others_wait_for",),
    ),
    Mutation(
        name="a call waits for a host that is gone",
        module="protocols/objects/departures.py",
        right="            told += self._lost(activity, call, lost)\n"
        "            without += [call] if lost and call not in without else []\n",
        wrong="            call.waiting.update(lost)\n",
        tests=(f"{DEPARTURES}::test_a_call_whose_host_is_lost_fails_and_what_its_tree_did_is_taken_back",),
        swarms=(CRASHES,),
    ),
    Mutation(
        name="who has lost a caller goes on",
        module="protocols/objects/departures.py",
        right="return any(caller.member in self.gone or is_of_before(caller) for caller in callers)",
        wrong="return False",
        tests=(f"{DEPARTURES}::test_what_was_called_by_way_of_a_lost_host_ends_without_effect",),
        swarms=(CRASHES,),
    ),
    Mutation(
        name="a replica refuses what another may have run",
        module="protocols/objects/departures.py",
        right="        if len(self._catalogue.find(target).members) > 1:\n            return False\n",
        wrong="",
        tests=(f"{DEPARTURES}::test_replicas_run_what_a_member_that_is_gone_has_called[0]",),
        swarms=(CRASHES,),
    ),
    Mutation(
        name="hosts go on before all of them have told what they have of one that is gone",
        module="live/services/object_views.py",
        right="self._gone and self._said(Flushed).keys() >= self._lives.keys() - self._gone:",
        wrong="self._gone:",
        tests=(f"{SURVIVING}::test_what_came_to_one_of_those_who_go_on_comes_to_the_other[1]",),
    ),
    Mutation(
        name="a host that the others went on without is waited for at the end",
        module="live/services/object_membership.py",
        right='            self._host.give_up(member, incarnations[member], "the members that are left go on without it")\n',
        wrong="            pass\n",
        tests=(f"{SURVIVING}::test_a_call_whose_host_is_lost_fails_and_the_others_go_on",),
    ),
    Mutation(
        name="what is told of a member that is gone leaves the clock behind",
        module="protocols/objects/exchange.py",
        right="        self.clock = max(self.clock, clock)\n",
        wrong="",
        tests=(f"{DEPARTURES}::test_what_is_told_of_a_member_that_is_gone_sets_the_clock_forward",),
    ),
    Mutation(
        name="a call fails though a replica is left",
        module="objects/call.py",
        right="if not any(each.callee.object == lost for each in answers):",
        wrong="if True:",
        tests=(f"{DEPARTURES}::test_replicas_that_are_left_answer_and_stay_equal",),
    ),
    Mutation(
        name="a NACK never brings the last of what is missing",
        module="protocols/objects/links.py",
        right="for sequence in missing:",
        wrong="for sequence in missing[:-1]:",
        tests=(f"{LINKS}::test_everything_that_is_missing_is_asked_for_and_sent_again_the_last_too",),
    ),
    Mutation(
        name="the last of what is missing is not asked for",
        module="protocols/objects/links.py",
        right="range(self.received + 1, last + 1)",
        wrong="range(self.received + 1, last)",
        tests=(f"{LINKS}::test_everything_that_is_missing_is_asked_for_and_sent_again_the_last_too",),
    ),
    Mutation(
        name="of two marks the smaller is kept",
        module="protocols/objects/vectors.py",
        right="if held is None or mark > held:",
        wrong="if held is None or mark < held:",
        tests=(f"{GOLDEN}::test_the_corrected_vectors_say_exactly_what_precedes_what",),
    ),
    Mutation(
        name="a message does not precede what its receiver sends next",
        module="protocols/objects/vectors.py",
        right="mark.sends >= sends",
        wrong="mark.sends > sends",
        tests=(f"{GOLDEN}::test_the_corrected_vectors_say_exactly_what_precedes_what",),
    ),
    Mutation(
        name="what one member has delivered counts as delivered everywhere",
        module="protocols/objects/vectors.py",
        right="return min((rows[member][source]",
        wrong="return max((rows[member][source]",
        tests=(f"{GOLDEN}::test_what_is_delivered_everywhere_is_forgotten",),
    ),
    Mutation(
        name="the last message that was acknowledged is kept and repeated",
        module="protocols/objects/links.py",
        right="if each <= received]:",
        wrong="if each < received]:",
        tests=(f"{LINKS}::test_what_was_acknowledged_since_is_not_sent_again",),
    ),
    Mutation(
        name="an instance knows only of ended ones of its own operation",
        module="protocols/objects/memory.py",
        right="sorted(type.conflicting[activity.op])",
        wrong="[activity.op]",
        tests=(f"{GOLDEN}::test_the_corrected_vectors_say_exactly_what_precedes_what",),
    ),
    Mutation(
        name="two targets of a serial call run at once",
        module="protocols/objects/activity.py",
        right="else self.released + 1",
        wrong="else self.released + 2",
        tests=(f"{PACE}::test_the_targets_of_a_serial_call_run_one_after_the_other",),
    ),
    Mutation(
        name="what a failed call did at other targets is kept",
        module="protocols/objects/calls.py",
        right="(activity.dues if call.failed else activity.undos).extend(call.undos)",
        wrong="activity.undos.extend(call.undos)",
        tests=(f"{PACE}::test_a_call_that_failed_at_one_target_is_taken_back_at_the_others_even_if_its_caller_goes_on",),
    ),
    Mutation(
        name="the younger one waits and the older one gives way",
        module="protocols/objects/queue.py",
        right="if each.may_call and each.key < copy.key]",
        wrong="if each.may_call and each.key > copy.key]",
        tests=(f"{SCENARIOS}::test_a_response_must_not_wait_for_a_request_that_waits_for_its_instance",),
    ),
    Mutation(
        name="later requests go first",
        module="protocols/objects/queue.py",
        right="while index and self.copies[index - 1].stamp > copy.stamp:",
        wrong="while index and self.copies[index - 1].stamp < copy.stamp:",
        tests=(f"{API}::test_replicas_all_run_a_request_and_one_result_comes_back",),
    ),
    Mutation(
        name="an instance that holds nothing up still counts as blocked",
        module="protocols/objects/queue.py",
        right="any(each.may_call for each in self.in_the_way(copy))",
        wrong="any(self.in_the_way(copy))",
        tests=(f"{API}::test_replicas_all_run_a_request_and_one_result_comes_back",),
    ),
    Mutation(
        name="a response waits for others that are not in its past",
        module="protocols/objects/memory.py",
        right="callee in past and past[callee].ended for callee in outstanding",
        wrong="True for callee in outstanding",
        tests=(f"{SCENARIOS}::test_a_response_must_not_wait_for_a_request_that_waits_for_its_instance",),
    ),
    Mutation(
        name="a request is stable when all clocks have come near to its own",
        module="protocols/objects/exchange.py",
        right="(link.known + 1, peer) > stamp",
        wrong="(link.known + 2, peer) > stamp",
        tests=(f"{GOLDEN}::test_a_message_is_stable_when_no_member_can_send_an_older_one",),
    ),
    Mutation(
        name="a heartbeat that overtook messages says that nothing older can come",
        module="protocols/objects/exchange.py",
        right="if packet.last <= link.received:",
        wrong="if True:",
        tests=(f"{LINKS}::test_a_heartbeat_that_overtook_a_message_does_not_say_that_nothing_older_can_come",),
    ),
    Mutation(
        name="the oldest message that waits counts as delivered",
        module="protocols/objects/exchange.py",
        right="next(iter(waiting.values()))[0] - 1 if waiting",
        wrong="next(iter(waiting.values()))[0] if waiting",
        tests=(f"{LINKS}::test_a_member_has_delivered_only_what_is_older_than_all_that_waits_there",),
    ),
    Mutation(
        name="the last message for which there is room is dropped",
        module="protocols/objects/links.py",
        right="sequence <= self.received + self._window:",
        wrong="sequence < self.received + self._window:",
        tests=(f"{LINKS}::test_with_room_for_one_message_the_next_is_taken_and_no_other",),
    ),
    Mutation(
        name="a member waits for whatever clock a peer says it waits for",
        module="protocols/objects/exchange.py",
        right="self.want(min(packet.wanted, self.clock))",
        wrong="self.want(packet.wanted)",
        tests=(f"{LINKS}::test_a_peer_that_waits_for_a_clock_that_is_nobodys_is_not_told_again_and_again",),
    ),
]
