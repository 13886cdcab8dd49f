"""The state of a register as bytes, so that it can be copied to a process that has just joined."""

from __future__ import annotations

import msgspec

from quire.model.errors import BadInput
from quire.protocols.sequencing.directory import Operation
from quire.protocols.sequencing.failover.configurations import Configuration, Name
from quire.protocols.sequencing.failover.register import Register


class RegisterState(msgspec.Struct, array_like=True):
    locations: dict[str, int]
    entries: dict[str, dict[int, int]]
    over: dict[str, dict[int, int]]
    lost: list[str]
    loads: dict[str, float]
    operation: Operation | None
    committed: dict[int, bool]
    moved: int
    hosting: dict[str, list[int]]
    evicted: list[int]
    untold: dict[int, list[int]]
    ordered: list[tuple[str, int]]
    tick_at: int | None
    balance_at: int
    configurations: list[Configuration]
    live: dict[int, tuple[Name, ...]]
    version: int
    waiting: list[int]
    there: list[Name]
    lives: dict[int, int]
    settled: int = -1


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(RegisterState)


def captured(register: Register) -> bytes:
    directory, succession = register.directory, register.succession
    return _encoder.encode(
        RegisterState(
            locations=directory.locations,
            entries=directory.entries,
            over=directory.over,
            lost=sorted(directory.lost),
            loads=directory.loads,
            operation=directory.operation,
            committed=directory.committed,
            moved=directory.moved,
            hosting={group: list(waiting) for group, waiting in directory.hosting.items()},
            evicted=sorted(directory.evicted),
            untold={sequencer: sorted(clients) for sequencer, clients in directory.untold.items()},
            ordered=directory.ordered,
            tick_at=directory.tick_at,
            balance_at=directory.balance_at,
            configurations=list(succession.configurations.values()),
            live=succession.live,
            version=succession.version,
            waiting=sorted(succession.waiting),
            there=sorted(succession.there),
            lives=succession.lives,
            settled=succession.settled,
        )
    )


def restore(register: Register, state: bytes) -> None:
    """A new register with this state. Raises BadInput if these bytes are not the state of one."""
    try:
        found = _decoder.decode(state)
    except msgspec.DecodeError as error:
        raise BadInput(f"this is not the state of a register: {error}") from error
    directory, succession = register.directory, register.succession
    directory.locations.update(found.locations)
    directory.entries.update(found.entries)
    directory.over.update(found.over)
    directory.lost.update(found.lost)
    directory.loads = found.loads
    directory.operation = found.operation
    directory.committed.update(found.committed)
    directory.moved = found.moved
    directory.hosting.update({group: dict.fromkeys(waiting) for group, waiting in found.hosting.items()})
    directory.evicted.update(found.evicted)
    directory.untold.update({sequencer: set(clients) for sequencer, clients in found.untold.items()})
    directory.ordered = found.ordered
    directory.tick_at, directory.balance_at = found.tick_at, found.balance_at
    succession.configurations.update({each.unit: each for each in found.configurations})
    succession.live.update(found.live)
    succession.version = found.version
    succession.waiting.update(found.waiting)
    succession.there.update(found.there)
    succession.lives.update(found.lives)
    succession.settled = found.settled
