"""Units of which no copy is left begin anew, with an empty state: nothing of before comes back, and nobody evicted does."""

from __future__ import annotations

import pytest

from quire.protocols.sequencing import packets as inner
from quire.protocols.sequencing.failover import Register
from quire.protocols.sequencing.failover import packets as wire
from quire.protocols.sequencing.failover.configurations import Configuration
from quire.protocols.sequencing.failover.register_state import captured, restore
from quire.protocols.sequencing.state import GroupState
from tests.sequencing.failover.test_rules import OPTIONS, OTHER, REG, UNIT, A, B, C, live, process


def test_a_unit_that_begins_anew_takes_nothing_of_moves_that_have_ended() -> None:
    """Else a group that was lost is there again, for some."""
    sequencer = process(A, Configuration(UNIT, 3, A, (B,), fresh=True, settled=4)).replicas[UNIT].sequencer
    assert sequencer is not None
    for move, taken in ((4, False), (5, True)):
        sequencer.receive(0, OTHER, inner.Transfer(move, ("G",), GroupState("G")))
        assert sequencer.moves.is_expected("G") is taken


@pytest.mark.parametrize("groups", [0, 1])
def test_a_unit_that_begins_anew_is_told_which_moves_have_ended_and_who_was_evicted(groups: int) -> None:
    register = Register(REG, (10, 11, 12), (UNIT,), OPTIONS)
    for name in (A, B, C):
        register.receive(0, name.address, wire.Here(name.life, -1))
    live(register.succession)
    for group in ("tea", "cake")[:groups]:
        register.directory.receive(0, 0, inner.Create(group))
        register.directory.receive(0, UNIT, inner.Hosted(group))
    register.directory.committed.update({0: True, 1: False})
    register.directory.evicted.add(5)
    # Another copy of the register has to know it, too.
    copy = Register(REG, (10, 11, 12), (UNIT,), OPTIONS)
    restore(copy, captured(register))
    copy.receive(0, C.address, wire.Missing(A))
    for address in (B.address, A.address):
        copy.receive(0, address, wire.Here(1, -1))
    found = copy.succession.configurations[UNIT]
    assert (found.fresh, found.settled) == (True, 1)
    assert copy.directory.untold == {UNIT: {5}}
    assert len(copy.directory.lost) == groups
