"""The messages between a benchmark's processes and the command that starts them, as lines of JSON."""

from __future__ import annotations

import msgspec

EVERYBODY = -1


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What one process has to do. The load ends after `messages` messages of each member or, if that is None, after a time."""

    contender: str
    me: int
    members: int
    addresses: tuple[str, ...]
    size: int = 64
    messages: int | None = None
    seconds: float = 1.0
    round_trips: int = 0
    """For latency: how many to make, one after the other."""
    sender: int = 0
    """For latency: the member that makes them, or EVERYBODY."""
    lookahead: int | None = None
    """For latency: how many logical times ahead a silent member acknowledges."""
    progress_s: float | None = None
    """How often to report progress; None for never."""
    directory: str | None = None
    """Where to write its trace part or its journal; None for nowhere."""
    observe: tuple[str, ...] = ()
    """The addresses at which members can be observed; empty for none."""

    def own_round_trips(self) -> int:
        """How many this process makes."""
        return self.round_trips if self.sender in (self.me, EVERYBODY) else 0


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Connected to everybody; the process waits for `go`."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """Everything was delivered here; the process waits for `end`, and serves the others until then."""


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    delivered: int
    resident_bytes: int


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """What a process measured between `go` and `end`."""

    me: int
    sent: int = 0
    delivered: int = 0
    digests: tuple[str, ...] = ()
    """Digests of everything delivered, in order: one, or one per origin if the contender promises no common order."""
    elapsed_s: float = 0.0
    """From `go` to the last delivery."""
    cpu_s: float = 0.0
    round_trips_us: tuple[float, ...] = ()
    syncs_us: tuple[float, ...] = ()
    """How long the bare disk took to sync as many bytes, measured alternately with the round trips."""
    plain_s: float | None = None
    """How long the bare disk took to append the bytes of this member's journal, in as many batches."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    because: str


Said = Ready | Done | Progress | Report | Failed

GO = b"go\n"
END = b"end\n"
