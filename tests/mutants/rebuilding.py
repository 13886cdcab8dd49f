"""Units without backups: each rule by which they are rebuilt from what clients know switched off, and some more."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

REBUILT = "tests/sequencing/failover/test_rebuilt.py"
REBUILDING = "tests/sequencing/failover/test_rebuilding.py"
VECTORS = f"{REBUILT}::test_a_group_is_rebuilt_from_the_answers_as_the_specification_says"
SWARM = "tests/sequencing/failover/test_swarm.py::test_no_run_without_backups_breaks_a_promise_to_a_group_that_is_not_lost"
TOTAL = f"{SWARM}[total-]"
MEMORY = "protocols/sequencing/failover/memory.py"
CLIENT = "protocols/sequencing/failover/client.py"
GROUP = "protocols/sequencing/failover/rebuilt.py"
UNIT = "protocols/sequencing/failover/rebuilding.py"
PROCESS = "protocols/sequencing/failover/process.py"
NUMBERING = "protocols/sequencing/numbering.py"
SEQUENCER = "protocols/sequencing/sequencer.py"

MUTATIONS = [
    Mutation(
        name="R10: who has testified believes what comes of an earlier life of a group",
        module=MEMORY,
        right="if life < self._lives.get(event.group, 0):",
        wrong="if life < 0:",
        tests=(f"{REBUILT}::test_who_has_testified_believes_nothing_of_an_earlier_life_wherever_it_comes_from",),
    ),
    Mutation(
        name="R10: who testifies does not promise the epoch",
        module=CLIENT,
        right="self.routes.heard(packet.unit, packet.epoch, source)\n        for group in packet.groups:",
        wrong="for group in packet.groups:",
        tests=(f"{REBUILT}::test_who_has_testified_believes_nothing_of_an_earlier_life_wherever_it_comes_from",),
    ),
    Mutation(
        name="R10: a unit takes what comes from clients that know of another epoch",
        module=PROCESS,
        right="return letter.epoch == epoch",
        wrong="return True",
        tests=(f"{REBUILDING}::test_whoever_knows_of_no_or_another_epoch_is_told_or_ignored",),
    ),
    Mutation(
        name="a unit takes what another passes on of a client",
        module=PROCESS,
        right="return type(letter.packet) not in OF_CLIENTS",
        wrong="return True",
        tests=(f"{REBUILDING}::test_whoever_knows_of_no_or_another_epoch_is_told_or_ignored",),
    ),
    Mutation(
        name="Z3: a unit goes on before all have testified",
        module=UNIT,
        right="if witnesses is None or self._unheard():",
        wrong="if witnesses is None or not self._testimonies:",
        tests=(f"{REBUILDING}::test_a_unit_is_rebuilt_when_every_witness_has_testified",),
        swarms=(TOTAL,),
    ),
    Mutation(
        name="Z4: a group goes on without somebody who cannot testify",
        module=GROUP,
        right="if not testimonies.keys() >= {*witnesses}:\n        return None",
        wrong="witnesses = tuple(client for client in witnesses if client in testimonies)",
        tests=(f"{VECTORS}[a member is gone: lost]",),
        swarms=(f"{SWARM}[total-clients crash]",),
    ),
    Mutation(
        name="Z4: a group goes on without a member",
        module=GROUP,
        right="if not state.members:\n        return None",
        wrong="",
        tests=(f"{REBUILT}::test_a_group_that_only_has_somebody_who_leaves_is_lost",),
    ),
    Mutation(
        name="Z2: a sender is told a number before a member has the message",
        module=NUMBERING,
        right="if self._is_witnessed(state, seq, seq + count - 1):",
        wrong="if True:",
        tests=(
            f"{REBUILDING}::test_a_sender_outside_is_told_a_number_only_when_a_member_has_the_message",
            f"{REBUILDING}::test_a_sender_in_the_group_gets_its_message_again_instead_of_a_number",
        ),
        swarms=(TOTAL,),
    ),
    Mutation(
        name="Z2: who joined after a message counts as one that has it",
        module=NUMBERING,
        right="state.reached[client] >= last and joined < first",
        wrong="state.reached[client] >= last",
        tests=(f"{REBUILDING}::test_a_sender_outside_is_told_a_number_only_when_a_member_has_the_message",),
    ),
    Mutation(
        name="Z5: numbers that are only mentioned are given again",
        module=GROUP,
        right="max([mentioned, *delivered,",
        wrong="max([*delivered,",
        tests=(
            f"{VECTORS}[number only mentioned in a context is not reused]",
            f"{REBUILDING}::test_a_number_of_which_only_members_of_another_group_have_heard_is_not_given_again",
        ),
    ),
    Mutation(
        name="Z5: a client does not testify of numbers in contexts",
        module=CLIENT,
        right="mentioned = merge(merge(memory.mentioned(everything), self.context), self.unstable)",
        wrong="mentioned: dict[str, int] = {}",
        tests=(f"{REBUILT}::test_a_client_testifies_of_every_number_that_it_has_heard_of",),
    ),
    Mutation(
        name="Z5: what nobody received counts as numbered, because a join told of it",
        module=GROUP,
        right="if seq in blank:",
        wrong="if False:",
        tests=(f"{REBUILT}::test_what_nobody_received_has_no_number_though_a_join_told_of_it",),
    ),
    Mutation(
        name="Z5: who has left since is a member, because somebody kept its join",
        module=GROUP,
        right="elif last is not None and last.req == told.pending:",
        wrong="elif last is not None:",
        tests=(f"{REBUILT}::test_who_has_left_since_is_no_member_because_somebody_kept_its_join",),
    ),
    Mutation(
        name="a request that has no answer is taken for an old one",
        module=GROUP,
        right="told.requests - (told.pending >= 0)",
        wrong="told.requests",
        tests=(f"{VECTORS}[pending request stays acceptable, others burnt]",),
    ),
    Mutation(
        name="a group goes on though its members were told of others",
        module=GROUP,
        right="if view is not None and view != {*event.members}:\n                return False",
        wrong="",
        tests=(f"{REBUILT}::test_a_join_that_presupposes_one_that_nobody_received_is_not_guessed_at",),
    ),
    Mutation(
        name="Z1: a client forgets a group when it has left it",
        module=MEMORY,
        right="if known.left is not None and known.left <= number:",
        wrong="if known.left is not None:",
        tests=(f"{REBUILT}::test_a_client_forgets_what_everybody_has_and_keeps_what_it_left_until_then",),
    ),
    Mutation(
        name="a leaver counts no more before everybody has its leave",
        module=SEQUENCER,
        right="if not self.options.remembered:\n            return self._departed(state, client)",
        wrong="if True:\n            return self._departed(state, client)",
        tests=(
            f"{REBUILDING}::test_a_leaver_counts_until_everybody_has_its_leave",
            f"{REBUILDING}::test_an_evicted_client_counts_until_everybody_has_its_leave",
        ),
    ),
    Mutation(
        name="a sender takes for numbered what it has no room to keep",
        module=CLIENT,
        right="if memory is not None and not (memory.believes(event) and self.hold.has_room(event)):",
        wrong="if memory is not None and not memory.believes(event):",
        tests=(f"{REBUILT}::test_a_sender_takes_its_message_for_numbered_only_if_it_keeps_it",),
    ),
    Mutation(
        name="a client sends more before it knows the number of what it sent",
        module="protocols/sequencing/failover/options.py",
        right="return super().blocking or not self.backups",
        wrong="return super().blocking",
        tests=(f"{REBUILT}::test_a_client_waits_for_a_number_before_it_sends_more",),
        swarms=(TOTAL,),
    ),
    Mutation(
        name="a primary that is called back goes on in a life that clients do not believe any more",
        module="protocols/sequencing/failover/replica.py",
        right="renew(state, found.life)",
        wrong="pass",
        tests=(f"{REBUILDING}::test_a_primary_that_is_called_back_before_another_was_live_goes_on_in_a_new_life",),
        swarms=(TOTAL,),
    ),
    Mutation(
        name="Z3: a move of a unit that is rebuilt goes on",
        module="protocols/sequencing/failover/register.py",
        right="if found.rebuilt and not found.live:",
        wrong="if False:",
        tests=(f"{REBUILDING}::test_a_lost_unit_is_given_to_anybody_and_its_moves_are_called_off",),
    ),
    Mutation(
        name="M5: a unit that was rebuilt does not know which moves have ended",
        module=UNIT,
        right="sequencer.moves.settled = witnesses.settled",
        wrong="pass",
        tests=(f"{REBUILDING}::test_a_unit_is_rebuilt_when_every_witness_has_testified",),
    ),
    Mutation(
        name="E3: a unit that was rebuilt does not know who was evicted",
        module=UNIT,
        right="sequencer.evicted.update(witnesses.evicted)",
        wrong="pass",
        tests=(f"{REBUILDING}::test_a_group_is_lost_with_a_client_that_was_evicted_and_the_others_are_not",),
    ),
    Mutation(
        name="who has left counts in a group that was rebuilt, though everybody has its leave",
        module=GROUP,
        right="state.reached[who] == left <= min(state.reached.values())",
        wrong="state.reached[who] < 0",
        tests=(
            f"{REBUILT}::test_what_everybody_delivered_and_forgot_is_not_blank_because_somebody_left_before_it",
            f"{REBUILDING}::test_who_has_left_and_is_known_to_everybody_to_have_does_not_count_when_a_group_is_rebuilt",
        ),
    ),
    Mutation(
        name="nobody reports who does not testify",
        module=UNIT,
        right="if self._ticks >= self._options.silent_ticks:",
        wrong="if False:",
        tests=(f"{REBUILDING}::test_who_is_silent_for_too_long_is_reported",),
    ),
    Mutation(
        name="a blank number is taken for a join or leave of who recorded it",
        module="pipeline/auditing/group_history.py",
        right="own = what >= 0 and what != BLANK and origin[index] == process",
        wrong="own = what >= 0 and origin[index] == process",
        tests=("tests/audit/test_groups.py",),
    ),
]
