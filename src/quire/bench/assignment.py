"""What the processes of a benchmark and the command that starts them say to each other, as lines of JSON."""

from __future__ import annotations

import msgspec

EVERYBODY = -1


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What one process is to do. Load ends after so many `messages` of each member or, without, after so many seconds."""

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
    """For latency: who makes them, or EVERYBODY."""
    lookahead: int | None = None
    """For latency: how many logical times a silent member gives away with an acknowledgement."""
    progress_s: float | None = None
    """How often to tell how far it is; never if not given."""
    directory: str | None = None
    """Where it puts its part of a trace, or its journal; nowhere if not given."""
    observe: tuple[str, ...] = ()
    """Where each member can be looked at; nowhere if not given."""

    def own_round_trips(self) -> int:
        """How many this process makes."""
        return self.round_trips if self.sender in (self.me, EVERYBODY) else 0


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """Connected to everybody; the process waits for `go`."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """Everything is delivered here; the process waits for `end`, and is there for the others until then."""


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    delivered: int
    resident_bytes: int


class Report(msgspec.Struct, frozen=True, kw_only=True, tag="report"):
    """What a process measured between `go` and `end`."""

    me: int
    sent: int = 0
    delivered: int = 0
    digests: tuple[str, ...] = ()
    """Of everything delivered, in order: one, or one an origin where the contender promises no common order."""
    elapsed_s: float = 0.0
    """From `go` to the last delivery."""
    cpu_s: float = 0.0
    round_trips_us: tuple[float, ...] = ()
    syncs_us: tuple[float, ...] = ()
    """How long the bare disk took in turn with the round trips to make as many bytes durable."""
    plain_s: float | None = None
    """How long the bare disk took for the bytes of this member's journal, appended in as many batches."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    because: str


Said = Ready | Done | Progress | Report | Failed

GO = b"go\n"
END = b"end\n"
