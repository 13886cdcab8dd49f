"""The application's state at one member: snapshots, restoring them, and the commands that change it.

A state with `apply` is changed by commands as they are delivered. One with only `snapshot` and `restore` is changed by the
application as it reads its messages, so both are called at the point that the application has read up to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from struct import Struct
from typing import Protocol, runtime_checkable

from quire.live.dynamic.sessions import Sessions
from quire.model.errors import BadInput, ProtocolViolation
from quire.replicated.home import Context, State
from quire.replicated.machine import Machine

_LENGTH = Struct("<I")


@runtime_checkable
class KeptState(Protocol):
    """State that the application itself maintains from the messages that it reads."""

    def snapshot(self) -> bytes | Iterable[bytes]: ...
    def restore(self, chunks: Iterable[bytes]) -> None: ...


GivenState = State | KeptState | Mapping[str, State] | None


class _Kept:
    """Adapter for a state without commands."""

    def __init__(self, state: KeptState) -> None:
        self.snapshot, self.restore = state.snapshot, state.restore

    def apply(self, payload: bytes, context: Context) -> object:  # noqa: ARG002
        raise ProtocolViolation(context.member, "it sent a command for a state that takes none")


class GroupState:
    """The state of a group at one member. `machine`: executes the commands, if the state has any."""

    def __init__(self, state: GivenState) -> None:
        self.sessions = Sessions()
        self.by_reader = state is not None and not isinstance(state, State | Mapping)
        """Whether the application changes the state as it reads."""
        self._all: Machine | None = None
        if self.by_reader:
            if not isinstance(state, KeptState):
                raise BadInput(f"a {type(state).__name__} cannot be a state: it needs the methods snapshot and restore")
            self._all = Machine(_Kept(state))
            self.declaration = f"{type(state).__name__}, kept by its application"
        elif state is not None:
            assert isinstance(state, State | Mapping)
            self._all = Machine(state)
            self.declaration = self._all.declaration()
        else:
            self.declaration = ""
        self.machine = None if self.by_reader else self._all

    def snapshot(self) -> Iterator[bytes]:
        """The state as it is now, in chunks that may be taken while later commands change it."""
        if self._all is None:
            return iter(())
        return _framed(self.sessions.pack(), self._all.snapshot())

    def restore(self, snapshot: bytes) -> None:
        """Raises BadInput, and changes nothing, where the snapshot is invalid."""
        if self._all is None:
            return
        chunks = _unframed(snapshot)
        callers = next(chunks, b"")
        self._all.restore(chunks)
        self.sessions.restore(callers)


def _framed(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield _LENGTH.pack(len(first)) + first
    for chunk in chunks:
        yield _LENGTH.pack(len(chunk)) + chunk


def _unframed(data: bytes) -> Iterator[bytes]:
    view, start = memoryview(data), 0
    while start < len(data):
        if len(data) - start < _LENGTH.size:
            raise BadInput("a snapshot is not complete")
        end = start + _LENGTH.size + _LENGTH.unpack_from(data, start)[0]
        if end > len(data):
            raise BadInput("a snapshot is not complete")
        yield bytes(view[start + _LENGTH.size : end])
        start = end
