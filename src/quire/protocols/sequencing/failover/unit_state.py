"""The state of a sequencer as bytes, so that another process can go on as that sequencer.

It has everything that determines what is numbered, answered or refused later. Derived values are computed again.
"""

from __future__ import annotations

import msgspec

from quire.model.errors import BadInput
from quire.protocols.sequencing import packets as wire
from quire.protocols.sequencing.moves import Giving
from quire.protocols.sequencing.sequencer import Sequencer
from quire.protocols.sequencing.state import GroupState


class UnitState(msgspec.Struct, array_like=True):
    groups: list[GroupState]
    forward: dict[str, int]
    giving: dict[int, Giving]
    taking: dict[int, dict[str, GroupState]]
    settled: int
    held: list[wire.DoMulticast]
    waiting: dict[str, list[int]]
    elsewhere: dict[str, int]
    evicted: list[int]
    forgetting: list[tuple[str, int, int]]
    founded: list[str]
    numbered: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(UnitState)


def captured(sequencer: Sequencer) -> bytes:
    moves = sequencer.moves
    return _encoder.encode(
        UnitState(
            groups=list(sequencer.groups.values()),
            forward=sequencer.forward,
            giving=moves.giving,
            taking=moves.taking,
            settled=moves.settled,
            held=[packet for packets in sequencer.held.values() for packet in packets.values()],
            waiting={group: sorted(clients) for group, clients in sequencer.waiting.items()},
            elsewhere=sequencer.elsewhere,
            evicted=sorted(sequencer.evicted),
            forgetting=[(*who, req) for who, req in sequencer.forgetting.items()],
            founded=sorted(sequencer.founded),
            numbered=sequencer.numbered,
        )
    )


def restore(sequencer: Sequencer, state: bytes) -> None:
    """A new sequencer with this state. Raises BadInput if these bytes are not the state of one."""
    try:
        found = _decoder.decode(state)
    except msgspec.DecodeError as error:
        raise BadInput(f"this is not the state of a sequencer: {error}") from error
    if not _is_sound(found):
        raise BadInput("this is not the state of a sequencer: its groups cannot be so")
    moves = sequencer.moves
    sequencer.groups.update({each.group: each for each in found.groups})
    sequencer.forward.update(found.forward)
    moves.giving.update(found.giving)
    moves.taking.update(found.taking)
    moves.settled = found.settled
    for giving in found.giving.values():
        moves.phase.update(dict.fromkeys(giving.groups, bool(giving.leaving)))
    for packet in found.held:
        sequencer.held.setdefault(packet.client, {})[packet.group, packet.counter] = packet
    sequencer.waiting.update({group: set(clients) for group, clients in found.waiting.items()})
    sequencer.elsewhere = found.elsewhere
    sequencer.evicted.update(found.evicted)
    sequencer.forgetting.update({(group, client): req for group, client, req in found.forgetting})
    sequencer.founded.update(found.founded)
    sequencer.numbered = found.numbered


def _is_sound(state: UnitState) -> bool:
    groups = {each.group for each in state.groups}
    others = [each for taken in state.taking.values() for each in taken.values()]
    leaving = [each for giving in state.giving.values() for each in giving.leaving]
    return all(each.is_sound() for each in (*state.groups, *others, *leaving)) and all(
        groups.issuperset(giving.groups) for giving in state.giving.values()
    )
