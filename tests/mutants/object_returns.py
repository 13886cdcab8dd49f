"""Hosts of objects that come back: each rule by which they are admitted and get their states switched off."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

RETURNS = "tests/objects/test_returns.py"
HOSTS = "tests/objects/test_returning_hosts.py"
SWARM = f"{RETURNS}::test_whoever_comes_back_has_what_the_others_have"
RULES = "protocols/objects/returns.py"
NODE = "protocols/objects/node.py"

MUTATIONS = [
    Mutation(
        name="who was given up before it was ever connected cannot be told from who comes in its place",
        module="live/network/peers.py",
        right="        self.incarnation = incarnation if self.incarnation is None else self.incarnation\n",
        wrong="",
        tests=(f"{HOSTS}::test_a_host_that_was_lost_before_another_that_came_back_had_met_it_comes_back_to_both",),
    ),
    Mutation(
        name="a state is handed over before all that was sent has come",
        module=RULES,
        right="number >= self._before[member] if member in self._before else member in self.catching_up",
        wrong="member in self._before or member in self.catching_up",
        tests=(f"{RETURNS}::test_a_state_is_not_handed_over_before_what_was_sent_has_come",),
        swarms=(SWARM,),
    ),
    Mutation(
        name="a state is handed over before all that has come is run",
        module=RULES,
        right="if not queues[name].copies and not queues[name].active]",
        wrong="]",
        tests=(f"{RETURNS}::test_a_state_is_handed_over_when_everything_that_was_sent_before_has_come_and_is_run",),
        swarms=(SWARM,),
    ),
    Mutation(
        name="everybody who has a state hands it over",
        module=RULES,
        right="if donor != self._me or name in",
        wrong="if name in",
        tests=(f"{RETURNS}::test_the_first_of_those_who_have_a_state_hands_it_over_and_the_others_do_not",),
    ),
    Mutation(
        name="objects are called at whoever comes back before it has their states",
        module=RULES,
        right="return bool(self.catching_up) and any(",
        wrong="return False and any(",
        tests=(f"{RETURNS}::test_calls_to_objects_of_whoever_comes_back_wait_until_it_has_their_states",),
        swarms=(SWARM,),
    ),
    Mutation(
        name="calls that were put off are forgotten",
        module=NODE,
        right="if activity is not None and call is not None and not call.waiting:",
        wrong="if activity is not None and call is not None and call.waiting:",
        tests=(f"{RETURNS}::test_calls_to_objects_of_whoever_comes_back_wait_until_it_has_their_states",),
    ),
    Mutation(
        name="whoever comes back begins with the clock of anybody",
        module=NODE,
        right="clock = max(each.clock for each in said.values())",
        wrong="clock = min(each.clock for each in said.values())",
        tests=(f"{RETURNS}::test_whoever_comes_back_begins_with_the_latest_clock_and_so_do_all",),
        swarms=(SWARM,),
    ),
    Mutation(
        name="what was said to the process before is taken",
        module="protocols/objects/exchange.py",
        right="and packet.to_life == self.life",
        wrong="",
        tests=(f"{RETURNS}::test_nothing_is_taken_that_was_said_by_or_to_the_process_before",),
    ),
    Mutation(
        name="what was said by the process before is taken",
        module="protocols/objects/exchange.py",
        right="packet.life == self._lives.get(source, 0) and",
        wrong="",
        tests=(f"{RETURNS}::test_nothing_is_taken_that_was_said_by_or_to_the_process_before",),
    ),
    Mutation(
        name="whoever takes a member for gone has delivered everything of the one that came back",
        module="protocols/objects/exchange.py",
        right="if clock <= CLOCK_MAX or not self._is_there(member):",
        wrong="if True:",
        tests=(f"{RETURNS}::test_who_takes_it_for_gone_still_says_nothing_of_what_is_delivered_of_whoever_came_back",),
    ),
    Mutation(
        name="what a lost member had called is run when it is back",
        module=RULES,
        right="return clock <= self.begun.get(caller.member, -1)",
        wrong="return False",
        tests=(f"{RETURNS}::test_what_a_lost_member_had_called_before_it_came_back_is_not_run",),
        swarms=(SWARM,),
    ),
    Mutation(
        name="it is guessed on whose behalf a call is",
        module=RULES,
        right="            copy.held = True\n",
        wrong="            copy.held = False\n",
        tests=(f"{RETURNS}::test_what_a_lost_member_had_called_before_it_came_back_is_not_run",),
    ),
    Mutation(
        name="what waits when a member is admitted is taken for its own",
        module=NODE,
        right="                self.returns.hold(copy)\n",
        wrong="                pass\n",
        tests=(f"{RETURNS}::test_what_waited_before_a_member_was_admitted_is_not_taken_for_its_own",),
    ),
    Mutation(
        name="whoever came back runs what is in its state again",
        module=NODE,
        right="last = max(begun, self.exchange.links[member].last_clock)",
        wrong="last = self.exchange.links[member].last_clock",
        tests=(f"{RETURNS}::test_of_what_is_told_of_a_lost_member_only_what_is_younger_concerns_whoever_came_back",),
    ),
    Mutation(
        name="an orphan makes the calls that it had put off",
        module="protocols/objects/departures.py",
        right="                call.rest = ()  # It calls nobody any more.\n",
        wrong="                pass\n",
        tests=(f"{RETURNS}::test_an_orphan_does_not_make_the_calls_that_it_had_put_off",),
    ),
    Mutation(
        name="an object whose only host was lost is called when that is back",
        module="protocols/objects/departures.py",
        right="return target in self.lost or not self.live",
        wrong="return not self.live",
        tests=(f"{HOSTS}::test_what_lived_only_there_stays_lost",),
    ),
    Mutation(
        name="whoever comes back has the numbers of the one before",
        module=NODE,
        right="self.number_from(life << LIFE_BITS)",
        wrong="self.number_from(0)",
        tests=(f"{RETURNS}::test_whoever_comes_back_takes_part_when_it_has_all_states_and_all_are_told",),
    ),
    Mutation(
        name="pieces of a state from two members are put together",
        module=RULES,
        right="if source != member}",
        wrong="}",
        tests=(f"{RETURNS}::test_what_was_begun_of_a_state_by_a_member_that_is_lost_is_begun_again_by_another",),
        harmless="pieces are kept by whom they come from, so what is left of a lost member's is never continued",
    ),
    Mutation(
        name="a state that MessagePack changes is handed over",
        module="objects/state.py",
        right="    if not same:\n",
        wrong="    if False:\n",
        tests=(f"{HOSTS}::test_a_state_that_is_not_plain_data_is_refused_at_the_host_that_comes_back",),
    ),
]
