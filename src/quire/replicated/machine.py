"""The state machine of one member: dispatches commands to all its replicated states, and takes snapshots of all of them.

A command is encoded as a head (a marker byte, the time at the caller, the length of a name), the name of the state that it is
for, and a body that this state understands. States and methods are identified by names, not numbers, so that data on disk can
still be read after another one was added.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from struct import Struct
from typing import Any

import msgspec

from quire.model.errors import BadInput, ProtocolViolation
from quire.replicated.base import Replicated
from quire.replicated.home import Context, State
from quire.replicated.snapshots import Restoration

COMMAND = 1
"""The first byte of a command."""

_HEAD = Struct("<BQB")
_NAME_BYTES_MAX = 255


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """A part of the snapshot of one state. The last one has no state, but the time of the latest command."""

    state: str
    data: bytes
    last: bool = False
    time_ns: int = 0


_ENCODE = msgspec.msgpack.Encoder().encode
_READ = msgspec.msgpack.Decoder(Chunk).decode


class Machine:
    """All states of a member by name; if there is only one, its name is empty."""

    def __init__(self, state: State | Mapping[str, State]) -> None:
        given = dict(state) if isinstance(state, Mapping) else {"": state}
        for name, each in given.items():
            if len(name.encode()) > _NAME_BYTES_MAX:
                raise BadInput(f"a state needs a name of at most {_NAME_BYTES_MAX} bytes, not {name!r}")
            if not isinstance(each, State):
                raise BadInput(f"a {type(each).__name__} cannot be a state: it needs the methods apply, snapshot and restore")
        if not given:
            raise BadInput("a group's state has at least one object")
        if len({id(each) for each in given.values()}) < len(given):
            raise BadInput("one object has two names in the group's state; create another")
        self.states = given
        self.latest_ns = 0
        """The latest time of any command that was executed."""
        self._by_name = {name.encode(): each for name, each in given.items()}

    def command(self, name: str, body: bytes, at_ns: int) -> bytes:
        """A command for the state with this name, encoded."""
        known = name.encode()
        if known not in self._by_name:
            raise BadInput(f"the group has no state {name!r}, but {', '.join(map(repr, self.states))}")
        return b"".join((_HEAD.pack(COMMAND, at_ns, len(known)), known, body))

    def execute(self, member: int, number: int, payload: bytes) -> Any:
        """Execute the next command in the order of all, called by this member; returns or raises what it does. Raises
        ProtocolViolation where no member of the same version would have sent it: this member then cannot go on."""
        if len(payload) < _HEAD.size or payload[0] != COMMAND:
            raise ProtocolViolation(member, "what it sent for the group's state is not a command")
        _, at_ns, length = _HEAD.unpack_from(payload)
        start = _HEAD.size + length
        state = self._by_name.get(payload[_HEAD.size : start])
        if state is None:
            raise ProtocolViolation(member, f"it sent a command for the state {payload[_HEAD.size : start]!r}, unknown here")
        if at_ns > self.latest_ns:
            self.latest_ns = at_ns
        return state.apply(payload[start:], Context(member, number, self.latest_ns / 1e9))

    def member_left(self, member: int) -> None:
        """A member is gone, at this point of the order of all commands."""
        for _, state in sorted(self.states.items()):
            if isinstance(state, Replicated):
                state._change(type(state).member_left, member)

    def declaration(self) -> str:
        """Equal at all members that declare the same states."""
        return ", ".join(f"{name}={_declared(each)}" if name else _declared(each) for name, each in sorted(self.states.items()))

    def beginning(self) -> str:
        """Equal at all members whose states are declared alike, and are equal now."""
        found = sha256()
        for _, each in sorted(self.states.items()):
            for chunk in _chunks(each.snapshot()):
                found.update(chunk)
        return f"{self.declaration()} beginning with {found.hexdigest()[:8]}"

    def snapshot(self) -> Iterator[bytes]:
        """Every state as it is now, in chunks, which may be asked for while commands go on."""
        snapshots = [(name, _chunks(each.snapshot())) for name, each in self.states.items()]
        return _labelled(snapshots, self.latest_ns)

    def restoration(self) -> MachineRestoration:
        """The receiving side of a snapshot: feed it each chunk, then finish it."""
        return MachineRestoration(self)

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Replace all states by a snapshot's; raises BadInput, without changing any Replicated, if the snapshot is invalid."""
        restoration = self.restoration()
        for chunk in chunks:
            restoration.feed(chunk)
        restoration.finish()


class MachineRestoration:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._restorations: dict[str, Restoration | list[bytes]] = {
            name: state._restoration() if isinstance(state, Replicated) else [] for name, state in machine.states.items()
        }
        self._end: Chunk | None = None

    def feed(self, data: bytes) -> None:
        """Take the next chunk; raises BadInput where it does not fit."""
        try:
            chunk = _READ(data)
        except msgspec.DecodeError as error:
            raise BadInput(f"a snapshot cannot be read: {error}") from None
        if chunk.last:
            self._end = chunk
            return
        restoration = self._restorations.get(chunk.state)
        if restoration is None:
            raise BadInput(f"a snapshot has a state {chunk.state!r}, which is not declared here")
        if isinstance(restoration, Restoration):
            restoration.feed(chunk.data)
        else:
            restoration.append(chunk.data)

    def finish(self) -> None:
        """Replace the states by what was fed; raises BadInput where it is incomplete."""
        if self._end is None:
            raise BadInput("a snapshot is not complete")
        for restoration in self._restorations.values():
            if isinstance(restoration, Restoration):
                restoration.check_complete()
        for name, restoration in self._restorations.items():
            state = self._machine.states[name]
            if isinstance(restoration, Restoration):
                assert isinstance(state, Replicated)
                state._restored(restoration)
            else:
                state.restore(restoration)
        self._machine.latest_ns = self._end.time_ns


def _declared(state: State) -> str:
    return state._declaration() if isinstance(state, Replicated) else type(state).__name__


def _chunks(snapshot: bytes | Iterable[bytes]) -> Iterable[bytes]:
    return (snapshot,) if isinstance(snapshot, bytes) else snapshot


def _labelled(snapshots: list[tuple[str, Iterable[bytes]]], time_ns: int) -> Iterator[bytes]:
    for name, chunks in snapshots:
        for data in chunks:
            yield _ENCODE(Chunk(name, data))
    yield _ENCODE(Chunk("", b"", last=True, time_ns=time_ns))
