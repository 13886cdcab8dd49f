"""The interface of a protocol: a state machine that takes one input at a time and returns effects.

A protocol owns its state and nothing else: no clock, socket, randomness, logging or other protocol. A driver
(the simulator, or the live runtime) feeds inputs and performs the effects, in the order in which they are
returned, before it feeds the next input. Each input is one atomic step.

The inputs:

submit(run)              the application of this member multicasts a run
send(run, to)            the same, to some members only, where the protocol is `addressed`
receive(source, packet)  a packet arrived from another member

Where members may come and go, a protocol lasts for one view: `remainder` says what is delivered at its end.

The effects are values, so that tests can compare them and a driver needs no knowledge of any protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import ClassVar

import msgspec

from quire.model.errors import BadInput, ProtocolViolation, QuireError
from quire.model.messages import RUN_MESSAGES_MAX, Message, Run
from quire.model.orders import Guarantee
from quire.model.packets import Packet


class Send(msgspec.Struct, frozen=True, gc=False):
    """Put the packet on the links to these members; `to=None` is one multicast to all the others."""

    packet: Packet
    to: tuple[int, ...] | None = None


class Deliver(msgspec.Struct, frozen=True, gc=False):
    """Hand the messages of the run to the application, in order. If the protocol gives a total order, `position` is that of
    the first of them; messages are ordered by their positions and, where these are equal, by their numbers."""

    run: Run
    position: tuple[int, ...] | None = None


class Waiting(msgspec.Struct, frozen=True):
    """A run that is held back, whom it waits for, and a sentence that says what for."""

    run: Run
    members: tuple[int, ...]
    because: str


Effect = Send | Deliver
Effects = Sequence[Effect]

NOTHING: Effects = ()


class Links:
    """What a protocol assumes of the links beneath it, weakest first."""

    RELIABLE = "reliable"  # nothing is lost; packets may come twice or in another order
    FIFO = "fifo"  # nothing is lost or repeated, and each link keeps its order


UNSOUND = "the counts of a run do not fit its body or exceed the limits"


def misplaced(source: int, packet: Packet) -> ProtocolViolation:
    """A packet of a kind that the protocol does not know."""
    return ProtocolViolation(source, f"a {packet.name or type(packet).__name__} packet is not expected here")


class Protocol(ABC):
    """One member's half of a protocol, for a fixed group of `members` numbered from 0."""

    promises: ClassVar[frozenset[Guarantee]]
    links: ClassVar[str]
    packets: ClassVar[tuple[type[Packet], ...]]
    """The classes of all packets that it sends, each with a tag of its own, so that they can be read from bytes."""
    changes_views: ClassVar[bool] = False
    """Whether members may join and leave while it runs: it has a `remainder`, and starts anew in each view."""
    relays: ClassVar[bool] = False
    """Whether members relay what others sent. A run is then in another packet on each hop, so packets alone do not determine
    the order in which the rest of a view is delivered: the layer of views, which knows the causes of each run, does."""
    clustered: ClassVar[bool] = False
    """Whether it matters in which cluster each member is: then it can be made with their names."""
    addressed: ClassVar[bool] = False
    """Whether messages may be sent to some of the members."""
    wakes_on_packets: ClassVar[bool] = False
    """Whether any packet may make room for what was refused, not only one that leads to a delivery here: a driver then
    offers what it keeps again after each packet that was taken."""

    def __init__(self, me: int, members: int) -> None:
        if members < 1:
            raise BadInput(f"a group needs at least one member, not {members}")
        if not 0 <= me < members:
            raise BadInput(f"member {me} is not in a group of {members} (they are numbered from 0)")
        self.me = me
        self.members = members

    @abstractmethod
    def submit(self, run: Run) -> Effects:
        """Multicast a run of this member's own messages, numbered on from the last one.

        Raises WindowFull, and changes nothing, while too many of them are undelivered.
        """

    def send(self, run: Run, to: tuple[int, ...]) -> Effects:  # noqa: ARG002
        """Send a run of this member's own messages, numbered on from the last one, to these members alone.

        Raises WindowFull, and changes nothing, while this member must wait; BadInput where the protocol cannot.
        """
        raise BadInput(f"{type(self).__name__} multicasts to the whole group only; submit the run instead")

    @abstractmethod
    def receive(self, source: int, packet: Packet) -> Effects:
        """Take a packet that `source` sent.

        Raises ProtocolViolation, and changes nothing, where no correct peer would have sent it; raises HoldBackFull,
        and changes nothing, where there is no room for it now: the driver then leaves it, and what follows it where links
        keep their order, on the link from `source`, goes on with the other links, and offers it again after the next
        delivery.
        """

    def _check_own(self, run: Run, expected: int) -> None:
        """Refuse a run that is not this member's next one."""
        if run.origin != self.me or run.first != expected:
            raise BadInput(f"member {self.me} must send its own message {expected} next, not {run.origin}:{run.first}")
        if not run.is_sound():
            raise BadInput(UNSOUND)

    def _check_peer(self, source: int) -> None:
        if source == self.me or not 0 <= source < self.members:
            raise ProtocolViolation(source, "it is not another member of the group")

    def is_awaited(self, said: Packet | None) -> bool:  # noqa: ARG002
        """Whether another member may wait for this member's unsent control packet, of a kind of which only the latest counts;
        `said` is the last packet that was sent to all. If none waits, sending can be postponed until it says more."""
        return True

    def audience(self) -> tuple[int, ...]:
        """The members that `submit` sends to now."""
        return tuple(range(self.members))

    def longest_run(self) -> int:
        """How many messages a run may have that is submitted."""
        return RUN_MESSAGES_MAX

    def expects(self, packet: Packet) -> bool:  # noqa: ARG002
        """Whether the run in this packet is for this member itself, and not only to be relayed."""
        return True

    def neighbours(self) -> tuple[int, ...]:
        """The members that this one exchanges packets with."""
        return tuple(member for member in range(self.members) if member != self.me)

    def passes_on(self, source: int) -> tuple[int, ...]:  # noqa: ARG002
        """The neighbours to which this member may relay what comes from that one."""
        return ()

    def passes(self, source: int, dest: int, by: int) -> bool:  # noqa: ARG002
        """Whether what `source` sends reaches `dest` through the relay `by`, a member other than both."""
        return False

    def role(self) -> str:
        """The role of this member in the group, for tables that show the load of each role."""
        return "member"

    def gap(self) -> QuireError | None:
        """The error for a missing packet that something held back here waits for, for a driver that has waited long enough."""
        return None

    def held_back(self) -> int:
        """How many messages were received but not yet delivered here."""
        return 0

    @abstractmethod
    def waiting(self) -> Sequence[Waiting]:
        """Every run that was received, or submitted, but not yet delivered here, in no particular order."""

    def positions(self, delivery: Deliver) -> Iterable[tuple[int, ...] | None]:
        """Where each message of a delivered run stands in the total order, the same at every member. There may be more
        positions than messages."""
        return repeat(delivery.position)

    def messages(self, delivery: Deliver) -> Iterator[Message]:
        """The messages of a delivered run, each as an object of its own."""
        run = delivery.run
        return map(Message, repeat(run.origin), range(run.first, run.end), run.payloads(), self.positions(delivery))

    def remainder(self, packets: Iterable[Packet], delivered: Sequence[int]) -> Sequence[Deliver]:  # noqa: ARG002
        """The end of a view: deliver the runs in these packets that are not delivered yet, given how many messages of each
        member are. It depends on nothing else, so members that have delivered the same deliver the rest in the same order.
        """
        raise BadInput(f"{type(self).__name__} keeps to one group of members; its views cannot change")
