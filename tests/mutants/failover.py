"""Sequencers that survive: each rule of the specification's table of ablations switched off, and some more."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

GOLDEN = "tests/sequencing/failover/test_golden.py"
RULES = "tests/sequencing/failover/test_rules.py"
CLIENT_RULES = "tests/sequencing/failover/test_client_rules.py"
ANEW = "tests/sequencing/failover/test_beginning_anew.py"
TAKING_OVER = "tests/sequencing/failover/test_taking_over.py"
STEPS = f"{GOLDEN}::test_every_step_says_what_the_script_says"
SWARM = "tests/sequencing/failover/test_swarm.py::test_no_run_with_crashes_breaks_a_promise"
TOTAL = f"{SWARM}[total-]"
LOSING = "tests/sequencing/failover/test_swarm.py::test_only_groups_without_a_copy_are_lost_when_sequencers_crash_together"
REPLICA = "protocols/sequencing/failover/replica.py"
STATE = "protocols/sequencing/failover/unit_state.py"
SUCCESSION = "protocols/sequencing/failover/succession.py"
CLIENT = "protocols/sequencing/failover/client.py"
SEQUENCER = "protocols/sequencing/sequencer.py"
EVERYTHING = f"{RULES}::test_another_process_gets_to_know_everything_that_decides_anything"


def not_replicated(what: str, right: str, wrong: str, *swarms: str) -> Mutation:
    return Mutation(
        name=f"{what} is not replicated", module=STATE, right=right, wrong=wrong, tests=(EVERYTHING,), swarms=swarms
    )  # fmt: skip


def _without(field: str) -> str:
    """Groups that come without this."""
    return f"{_GROUPS}\n    [each.{field}.clear() for each in found.groups]"


_GROUPS = "sequencer.groups.update({each.group: each for each in found.groups})"

MUTATIONS = [
    Mutation(
        name="R2: what follows from an input leaves before the backups have it",
        module=REPLICA,
        right="while self.live and self._kept_back and self._kept_back[0][0] <= safe:",
        wrong="while self.live and self._kept_back:",
        tests=(f"{STEPS}[fo_gate]",),
        swarms=(TOTAL,),
    ),
    Mutation(
        name="R3: records are applied and acknowledged in the order in which they come",
        module=REPLICA,
        right="self._records.pop(self.index + 1, None)",
        wrong="self._records.pop(min(self._records, default=0), None)",
        tests=(f"{RULES}::test_records_that_come_out_of_order_are_acknowledged_in_order",),
    ),
    Mutation(
        name="R4: records of an epoch that is over are acknowledged",
        module=REPLICA,
        right="if packet.epoch != self.epoch or not self._synced:",
        wrong="if self.sequencer is None:",
        tests=(f"{STEPS}[fo_fence]", f"{RULES}::test_a_backup_of_the_new_epoch_takes_no_record_before_its_snapshot"),
    ),
    Mutation(
        name="R5: a primary takes requests before its epoch is live",
        module=REPLICA,
        right="if not self.live or len(self._records) >= UNACKNOWLEDGED_MAX:",
        wrong="if not self.primary or len(self._records) >= UNACKNOWLEDGED_MAX:",
        tests=(f"{STEPS}[fo_fence]",),
    ),
    Mutation(
        name="R6: an epoch that is over becomes live",
        module=SUCCESSION,
        right="if found is None or found.epoch != epoch:",
        wrong="if found is None:",
        tests=(f"{RULES}::test_an_epoch_that_is_over_does_not_become_live",),
    ),
    Mutation(
        name="R7: a copy of an epoch that never was live becomes primary",
        module=SUCCESSION,
        right="self.there.intersection(self.live.get(unit, self.there))",
        wrong="self.there.intersection(self.there if found is None else found.names)",
        tests=(f"{RULES}::test_only_a_copy_of_the_last_live_epoch_becomes_primary",),
    ),
    Mutation(
        name="R7: a unit goes on without a backup",
        module=SUCCESSION,
        right="if chosen or not self._backups else None",
        wrong="if True else None",
        tests=(f"{RULES}::test_a_unit_waits_rather_than_go_on_without_a_backup",),
    ),
    Mutation(
        name="R7: a unit of which no copy is left goes on waiting unless somebody else can be chosen",
        module=SUCCESSION,
        right="return self._reconsider() or bool(self.gone())",
        wrong="return self._reconsider()",
        tests=(f"{RULES}::test_a_unit_begins_anew_when_its_last_copy_comes_back_without_its_state",),
        swarms=(f"{LOSING}[total]",),
    ),
    Mutation(
        name="R7: a unit begins anew while a copy of it may be there",
        module=SUCCESSION,
        right="if all(name.life < self.lives[name.address] for name in names)",
        wrong="if not self.there.intersection(names)",
        tests=(f"{RULES}::test_a_unit_waits_for_a_copy_that_may_come_back",),
        swarms=(f"{LOSING}[total]",),
    ),
    Mutation(
        name="M5: a unit that begins anew does not know which moves have ended",
        module=REPLICA,
        right="            self.sequencer.moves.settled = found.settled\n",
        wrong="",
        tests=(f"{ANEW}::test_a_unit_that_begins_anew_takes_nothing_of_moves_that_have_ended",),
        swarms=(f"{LOSING}[total]",),
    ),
    Mutation(
        name="E3: a unit that begins anew without groups is not told who was evicted",
        module="protocols/sequencing/failover/register.py",
        right="            effects += self._addressed(self.directory.interrupt(now, unit))\n            self.directory.lose(",
        wrong="            effects += self._lose(now, unit, self.directory.at(unit))\n            self.directory.lose(",
        tests=(f"{ANEW}::test_a_unit_that_begins_anew_is_told_which_moves_have_ended_and_who_was_evicted[0]",),
    ),
    Mutation(
        name="R8: who is excluded forgets its state before the others have it",
        module=REPLICA,
        right="if found.live and self._me not in found.names:",
        wrong="if self._me not in found.names:",
        tests=(f"{RULES}::test_who_was_excluded_keeps_its_state_until_others_are_known_to_have_it",),
    ),
    Mutation(
        name="R10: a client believes what comes of an epoch that is over",
        module=CLIENT,
        right="if packet.epoch < known or",
        wrong="if packet.epoch < -1 or",
        tests=(f"{CLIENT_RULES}::test_a_client_believes_nothing_of_an_epoch_that_is_over",),
    ),
    Mutation(
        name="an acknowledgement of an earlier life counts",
        module="protocols/sequencing/failover/process.py",
        right="replica.acknowledged(packet, Name(source, packet.life))",
        wrong="replica.acknowledged(packet, Name(source, 0))",
        tests=(f"{RULES}::test_an_acknowledgement_of_an_earlier_life_counts_for_nothing",),
    ),
    Mutation(
        name="pieces of a state are put together in the order in which they come",
        module=REPLICA,
        right="if packet.piece == len(self._pieces) < packet.pieces - 1:",
        wrong="if len(self._pieces) < packet.pieces - 1:",
        tests=(f"{RULES}::test_a_long_state_travels_in_pieces_of_which_few_are_on_the_way",),
        swarms=(f"{SWARM}[total-late copies]",),
    ),
    Mutation(
        name="a unit is split at a failover",
        module=STATE,
        right=_GROUPS,
        wrong="sequencer.groups.update({each.group: each for each in found.groups[:1]})",
        tests=(EVERYTHING,),
        swarms=(TOTAL,),
    ),
    not_replicated("what a sender's messages were numbered", _GROUPS, _without("senders"), TOTAL),
    not_replicated("the last request of a client", _GROUPS, _without("requests")),
    not_replicated("who is departing", _GROUPS, _without("departing")),
    not_replicated("what is given away", "moves.giving.update(found.giving)", "pass", TOTAL),
    not_replicated(
        "that a group is suspended", "moves.phase.update(dict.fromkeys(giving.groups, bool(giving.leaving)))", "pass"
    ),
    not_replicated("what is taken", "moves.taking.update(found.taking)", "pass"),
    not_replicated("which moves have ended", "moves.settled = found.settled", "pass"),
    not_replicated("who was evicted", "sequencer.evicted.update(found.evicted)", "pass"),
    not_replicated("where a group went", "sequencer.forward.update(found.forward)", "pass"),
    not_replicated("who is to be forgotten", "sequencer.forgetting.update(", "dict[tuple[str, int], int]().update("),
    Mutation(
        name="M3: a sequencer takes back what it gives away when that takes long",
        module="protocols/sequencing/moves.py",
        right="effects += self._transfers(op, giving) if giving.leaving else self._polls()",
        wrong="self.phase, self.giving = {}, {}",
        tests=(TOTAL,),
    ),
    Mutation(
        name="M5: a late transfer of a move that has ended is taken",
        module="protocols/sequencing/moves.py",
        right="if packet.op <= self.settled or self.suspended(packet.state.group):",
        wrong="if self.suspended(packet.state.group):",
        tests=(
            f"{GOLDEN}::test_a_move_is_committed_by_the_register_and_a_late_transfer_of_it_is_ignored",
            "tests/sequencing/test_rules.py::test_what_comes_late_of_a_move_that_has_ended_brings_no_group_back",
        ),
    ),
    Mutation(
        name="J3: the directory forgets a client that has joined again",
        module="protocols/sequencing/directory.py",
        right="if self.entries[group].get(client, req) < req:",
        wrong="if client in self.entries[group]:",
        tests=(f"{RULES}::test_a_late_word_that_a_client_has_left_does_not_undo_that_it_joined_again",),
    ),
    Mutation(
        name="E2: an evicted client is waited for as one that leaves",
        module=SEQUENCER,
        right="effects += self._has_left(state, client) if client in state.departing else []\n        return effects",
        wrong="pass\n        return effects",
        tests=(f"{STEPS}[fo_evict]",),
        swarms=(TOTAL,),
    ),
    Mutation(
        name="E2: an evicted client stays in a group that was on its way",
        module=SEQUENCER,
        right="effects = self._expel()\n        if changed:",
        wrong="effects: list[Send] = []\n        if changed:",
        tests=(f"{RULES}::test_who_was_evicted_while_a_group_was_on_its_way_leaves_it_however_that_ended",),
        swarms=(TOTAL,),
    ),
    Mutation(
        name="E3: what an evicted client asks for is carried out",
        module=SEQUENCER,
        right="if self.evicted and self._is_of_an_evicted(packet):",
        wrong="if False:",
        tests=(
            f"{STEPS}[fo_evict]",
            f"{RULES}::test_what_another_sequencer_passes_on_of_an_evicted_client_is_not_carried_out",
        ),
        swarms=(TOTAL,),
    ),
    Mutation(
        name="J1: a join that was granted is carried out though its client was evicted since",
        module=SEQUENCER,
        right="or client in state.departing or client in self.evicted:",
        wrong="or client in state.departing:",
        tests=(f"{RULES}::test_a_join_that_was_granted_before_its_client_was_evicted_is_not_carried_out",),
    ),
    Mutation(
        name="who was evicted while it was about to join stays entered",
        module=SEQUENCER,
        right="self.forgetting.update(dict.fromkeys(out, NEVER))",
        wrong="",
        tests=(f"{RULES}::test_a_client_that_was_evicted_while_it_was_about_to_join_does_not_stay_entered",),
    ),
    Mutation(
        name="a client does not repeat what it asked for when another runs the unit",
        module=CLIENT,
        right="self._repeat(now, live) if live and not self.evicted else ()",
        wrong="()",
        tests=(f"{CLIENT_RULES}::test_a_client_repeats_what_has_no_answer_when_another_runs_the_unit",),
    ),
    Mutation(
        name="a client takes no notice when a unit first speaks in an epoch",
        module=CLIENT,
        right="(self._repeat(now, {packet.by}) if self._speaks(packet.by, packet.epoch) else ())",
        wrong="()",
        tests=(f"{CLIENT_RULES}::test_a_client_asks_again_when_a_unit_first_speaks_in_an_epoch",),
    ),
    Mutation(
        name="a client takes no notice when who runs a unit says so itself",
        module=CLIENT,
        right="if self._is_run_by(source, each))",
        wrong="if False)",
        tests=(f"{CLIENT_RULES}::test_a_client_asks_again_when_who_runs_a_unit_says_so_itself_and_then_no_more",),
    ),
    Mutation(
        name="who takes over does not say that it works",
        module=REPLICA,
        right="self._routes.went_live(self.unit, self.epoch)",
        wrong="pass",
        tests=(f"{TAKING_OVER}::test_who_begins_to_work_tells_all_clients_that_it_does",),
    ),
    Mutation(
        name="who takes over waits before it sends again what was numbered before",
        module=SEQUENCER,
        right="(now, state.seq, state.seq)",
        wrong="(now, state.seq, 0)",
        tests=(f"{TAKING_OVER}::test_who_takes_over_sends_at_once_what_a_client_lacks_of_what_was_numbered_before",),
    ),
]
