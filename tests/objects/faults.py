"""Wrong rules: those that the paper prints, and mistakes that are easily made. The suites must catch each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from quire.model.packets import Packet
from quire.protocols.node import Effects
from quire.protocols.objects.activity import Activity
from quire.protocols.objects.exchange import Exchange
from quire.protocols.objects.links import Link
from quire.protocols.objects.memory import Memory
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.packets import (
    AnyContent,
    Data,
    Heartbeat,
    Instance,
    Mark,
    PastOnWire,
    Request,
    Response,
    Stamp,
)
from quire.protocols.objects.queue import Copy, ObjectQueue
from quire.protocols.objects.vectors import merge, precedes

_may_deliver = ObjectNode._may_deliver


class ResponsesWaitForRequests(ObjectNode):
    """SO(1-2) as printed: a request goes before a response that it precedes, if the two instances conflict."""

    def _may_deliver(self, activity: Activity, response: Response) -> bool:
        queue, past = self.queues.get(activity.instance.object), dict(response.past)
        if queue is not None:
            against = queue.placed.type.conflicting[activity.op]
            if any(copy.op in against and precedes(copy.request.sender, copy.request.sends, past) for copy in queue.copies):
                return False
        return _may_deliver(self, activity, response)


class HeadOnly(ObjectNode):
    """Only the top of the receipt queue is delivered: a response waits for the requests that came before it."""

    def _may_deliver(self, activity: Activity, response: Response) -> bool:
        queue = self.queues.get(activity.instance.object)
        return not (queue is not None and queue.copies) and _may_deliver(self, activity, response)


class StableByNextOfSender(ObjectNode):
    """Stability (1) alone suffices: the sender has sent something after the message."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.later: dict[int, int] = {}

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        if isinstance(packet, Heartbeat):
            self.later[source] = packet.clock
        return super().receive(now, source, packet)

    def _is_stable(self, request: Request) -> bool:
        source = request.sender.member
        return source == self.address or self.later.get(source, -1) >= request.clock


class StableByDescendants(ObjectNode):
    """Both printed conditions: besides, every object has sent something that the message significantly precedes."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.pasts: dict[int, list[PastOnWire]] = {}

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        if isinstance(packet, Data) and isinstance(packet.content, Request | Response):
            self.pasts.setdefault(source, []).append(packet.content.past)
        return super().receive(now, source, packet)

    def _is_stable(self, request: Request) -> bool:
        others = [member for member in range(self.catalogue.members) if member != self.address]
        return all(
            any(precedes(request.sender, request.sends, dict(past)) for past in self.pasts.get(member, ())) for member in others
        )


def _conflicts_by_its_own_operation(self: ObjectNode, activity: Activity, response: Response) -> bool:
    """Rule (1) as printed: what a response conflicts with is decided by its own operation, which is another object's."""
    queue, past, call = self.queues.get(activity.instance.object), dict(response.past), activity.call_of(response.sender)
    if queue is not None and call is not None:
        against = queue.placed.type.conflicting.get(call.op, frozenset())
        if any(copy.op in against and precedes(copy.request.sender, copy.request.sends, past) for copy in queue.copies):
            return False
    return _may_deliver(self, activity, response)


def _answers_with_the_number_of_its_request(original: Callable[..., tuple[int, PastOnWire]]) -> object:
    def send(self: Memory, activity: Activity, clock: int, *, ends: bool) -> tuple[int, PastOnWire]:
        if ends and activity.caller is not None:
            activity.sends = activity.past[activity.caller].sends - 1
        return original(self, activity, clock, ends=ends)

    return send


def _one_component_for_each_object(self: Memory, instance: Instance) -> Instance:
    return Instance(0, 0, instance.object, instance.member)


def _never_dies(self: ObjectQueue, copy: Copy) -> bool:
    return False


def _dies_of_direct_predecessors(self: ObjectQueue, copy: Copy) -> bool:
    return copy.held or any(each.may_call for each in self.in_the_way(copy))


def _numbers_only_changes(self: Memory, activity: Activity, clock: int, *, ends: bool) -> tuple[int, PastOnWire]:
    past = tuple(activity.past.items())
    activity.sends = max(activity.sends, 1)
    activity.past[self.key(activity.instance)] = Mark(activity.sends, clock, ends)
    return activity.sends, past


def _takes_only_the_senders_component(self: Memory, activity: Activity, message: Request | Response) -> None:
    merge(activity.past, [(message.sender, Mark(message.sends, message.clock, isinstance(message, Response)))])


def _forgets_aborted(original: Callable[[Memory, Activity], None]) -> Callable[[Memory, Activity], None]:
    def end(self: Memory, activity: Activity) -> None:
        if activity.ending is not None and activity.ending[0] == "ok":
            original(self, activity)

    return end


def _starts_at_receipt(self: Memory, activity: Activity, type: object) -> None:
    """The vector is taken when the request comes, before what it has to wait for has ended."""


def _orders_by_instances(original: Callable[[ObjectNode, int, int, AnyContent], None]) -> object:
    """Requests by the number of their instance, which is fixed when that starts."""

    def accept(self: ObjectNode, now: int, source: int, content: AnyContent) -> None:
        original(self, now, source, content)
        if isinstance(content, Request):
            for target in content.targets:
                for copy in self.queues[target].copies if target in self.queues else ():
                    if copy.request is content:
                        copy.stamp = Stamp(content.age.clock, content.age.member)
                        self.queues[target].copies.sort(key=lambda each: each.stamp)

    return accept


def _stable_without_next(self: Exchange, stamp: Stamp) -> bool:
    return all((link.known, peer) > stamp for peer, link in self.links.items() if peer != stamp.member)


def _always_stable(self: Exchange, stamp: Stamp) -> bool:
    return True


def _counts_heartbeats_over_gaps(original: Callable[[Exchange, int, Link, Heartbeat], None]) -> object:
    def take(self: Exchange, now: int, link: Link, packet: Heartbeat) -> None:
        link.known = max(link.known, packet.clock)
        original(self, now, link, packet)

    return take


def _takes_clocks_over_gaps(original: Callable[[Link, int, Data], Iterator[AnyContent]]) -> object:
    def take(self: Link, now: int, packet: Data) -> Iterator[AnyContent]:
        self.known = max(self.known, packet.content.clock)
        return original(self, now, packet)

    return take


def _expects_from_zero(original: Callable[[Link, int, Data], Iterator[AnyContent]]) -> object:
    def take(self: Link, now: int, packet: Data) -> Iterator[AnyContent]:
        return original(self, now, Data(packet.sequence + 1, packet.received, packet.content))

    return take


def _forgets_early(original: Callable[[Exchange], dict[int, int]]) -> object:
    def floor(self: Exchange) -> dict[int, int]:
        return {member: clock + 6 for member, clock in original(self).items()}

    return floor


def _ready_beside_conflicts(self: ObjectQueue, copy: Copy) -> bool:
    return not copy.held and not any(self.before(copy))


def _knows_no_callers(self: ObjectQueue, copy: Copy) -> Iterator[object]:
    against = self.placed.type.conflicting[copy.op]
    return (each for each in self.active.values() if each.op in against)


PLANTED: dict[str, tuple[type, str, object, str]] = {
    # name: where, what, the wrong rule, the kind of swarm that must catch it
    "G1 sends are numbered only where something changes": (Memory, "send", _numbers_only_changes, "exact"),
    "G2 a response has the number of its request": (
        Memory, "send", _answers_with_the_number_of_its_request(Memory.send), "exact",
    ),
    "G3 requests are ordered by their instances": (ObjectNode, "_accept", _orders_by_instances(ObjectNode._accept), "exact"),
    "G4 only the sender's component is taken": (Memory, "receive", _takes_only_the_senders_component, "exact"),
    "G5 aborted instances leave nothing": (Memory, "end", _forgets_aborted(Memory.end), "exact"),
    "G6 instances start at receipt": (Memory, "start", _starts_at_receipt, "exact"),
    "G7 responses wait for requests": (ObjectNode, "_may_deliver", ResponsesWaitForRequests._may_deliver, "exact"),
    "G8 everything is stable": (Exchange, "is_stable", _always_stable, "exact"),
    "G8 stable without the next number": (Exchange, "is_stable", _stable_without_next, "idle"),
    "G9 numbers are expected from 0": (Link, "take", _expects_from_zero(Link.take), "exact"),
    "G10 only the head is delivered": (ObjectNode, "_may_deliver", HeadOnly._may_deliver, "exact"),
    "G11 nobody gives way": (ObjectQueue, "must_die", _never_dies, "cyclic"),
    "G11 waiting is not handed on": (ObjectQueue, "is_blocked", _dies_of_direct_predecessors, "cyclic"),
    "G11 callers are in the way": (ObjectQueue, "in_the_way", _knows_no_callers, "cyclic"),
    "G12 a response conflicts by its own operation": (
        ObjectNode, "_may_deliver", _conflicts_by_its_own_operation, "exact",
    ),
    "G13 one component for each object": (Memory, "key", _one_component_for_each_object, "exact"),
    "a heartbeat counts despite a gap": (
        Exchange, "_take_heartbeat", _counts_heartbeats_over_gaps(Exchange._take_heartbeat), "lossy",
    ),
    "a clock counts despite a gap": (Link, "take", _takes_clocks_over_gaps(Link.take), "lossy"),
    "too much is forgotten": (Exchange, "floor", _forgets_early(Exchange.floor), "collected"),
    "conflicting instances overlap": (ObjectQueue, "is_ready", _ready_beside_conflicts, "exact"),
}  # fmt: skip
