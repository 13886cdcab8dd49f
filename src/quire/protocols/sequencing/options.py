"""The options of a sequencing service."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from quire.model.errors import BadInput
from quire.model.orders import RELIABLE, Guarantee

Order = Literal["total", "hybrid", "causal-total"]

_PROMISES: dict[Order, frozenset[Guarantee]] = {
    "total": frozenset({Guarantee.TOTAL}),
    "hybrid": frozenset({Guarantee.HYBRID}),
    "causal-total": frozenset({Guarantee.CAUSAL, Guarantee.TOTAL}),
}


class SequencingOptions(msgspec.Struct, frozen=True, kw_only=True):
    order: Order = "total"
    """total: any two clients deliver what both deliver in one order; hybrid: only what is of one group, and across groups
    causes before effects; causal-total: both."""
    acyclic: bool = False
    """Whether the orders of all clients together have no cycle, for which more groups must share a sequencer."""
    pipelined: bool = False
    """Where causes matter: send on before the last message has its number. Otherwise a client waits for it."""
    bodies: Literal["relay", "direct"] = "relay"
    """Whether messages go through the sequencer, or from members to members while it only numbers them."""
    window: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = 1 << 16
    """How many messages without a number a client may have."""
    history: Annotated[int, msgspec.Meta(ge=1, le=1 << 30)] = 1 << 17
    """How many messages of a group its sequencer keeps for members that lack them, and clients hold back."""
    history_bytes: Annotated[int, msgspec.Meta(ge=1, le=1 << 40)] = 8 << 20
    """How many bytes those messages may have; one run may have more."""
    tick_ms: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 50
    """After how long what was not answered is repeated."""
    lease_ticks: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 40
    """After how many ticks a move of groups that has not ended is called off."""
    hysteresis: Annotated[int, msgspec.Meta(ge=1, le=99)] = 25
    """By how many per cent moving groups must relieve the busiest sequencer to be worth it."""
    balance_ticks: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] = 40
    """How often moving groups to relieve a sequencer is considered; 0 is never."""

    def __post_init__(self) -> None:
        if self.window > self.history:
            raise BadInput(f"a window of {self.window} messages does not fit into a history of {self.history}")
        if self.acyclic and self.order == "hybrid":
            raise BadInput("acyclic needs an order that is total across groups: choose total or causal-total")

    @property
    def totally(self) -> bool:
        """Whether groups that share clients are ordered relative to each other."""
        return self.order != "hybrid"

    @property
    def causally(self) -> bool:
        return self.order != "total"

    @property
    def blocking(self) -> bool:
        """Whether a client waits for the numbers of what it sent before it sends more."""
        return self.causally and not self.pipelined

    @property
    def remembered(self) -> bool:
        """Whether only the members of a group know its state if its sequencer is lost."""
        return False

    @property
    def tick_ns(self) -> int:
        return self.tick_ms * 1_000_000

    def promises(self) -> frozenset[Guarantee]:
        """The guarantees that traces of the service must satisfy."""
        acyclic = frozenset({Guarantee.ACYCLIC}) if self.acyclic else frozenset()
        return RELIABLE | {Guarantee.MEMBERSHIPS} | _PROMISES[self.order] | acyclic
