"""The event loop of the simulator: takes the next event in virtual time, feeds it to a protocol, and performs the effects.

All future events are in one heap, ordered by time and, at equal times, by when they were scheduled. Most of them are parcels: a
packet in flight, with the logical time at which it left. Copies of a multicast that arrive at the same time are one entry.
Whatever a member does is one step: an input, then its effects in order.

The engine keeps a Lamport clock for each member, separate from the protocols' clocks. Every recorded event advances it, k
messages k times; a received packet raises it to the time of its send. Events are recorded as plain integers, and anything that
can be computed from the records later (counts, costs, digests) is not computed here, because this loop determines the speed.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count as counter
from typing import Any

from quire.model.errors import BadInput, HoldBackFull, ProtocolViolation, WindowFull
from quire.model.messages import Body, Run
from quire.model.packets import Packet, header_bytes
from quire.protocols.contract import Deliver, Effects, Links, Protocol
from quire.simulation.connections import Connections
from quire.simulation.flights import Entry, Parcel
from quire.simulation.network import Network
from quire.simulation.receipts import Receipts, Received
from quire.simulation.site import Site
from quire.simulation.tally import Tally
from quire.trace.kinds import DELIVER, PACKET, RECEIVE, SEND
from quire.trace.log import Address, EventLog
from quire.trace.records import pack_record

GROUP_NAME = "all"
_CHUNK_EVENTS = 1 << 14


class Engine:
    """Runs one group. `observe` is called with every delivery, `between` from time to time between two events.

    `raw`: put no reliable connections between the network and a protocol that needs them. `receipts`: record in the trace when
    messages were received.
    """

    def __init__(
        self,
        protocols: Sequence[Protocol],
        network: Network,
        *,
        raw: bool = False,
        receipts: bool = False,
    ) -> None:
        everybody = Address(GROUP_NAME, tuple(range(len(protocols))))
        self.sites = [Site(protocol, EventLog(protocol.me, (everybody,))) for protocol in protocols]
        self.tally: Tally | None = None
        if protocols[0].addressed:
            self.tally = Tally(len(protocols))
            for site in self.sites:
                site.receive = self._only_noting_what_is_expected(site)
        if receipts:
            for site in self.sites:
                site.receive = Receipts(site.member, site.receive).receive
        self.network = network
        self.now = 0
        self.stopped = False
        self.observe: Callable[[int, Deliver], None] | None = None
        self.between: Callable[[], None] | None = None
        self.origin_waits = array("q")
        """For each message, nanoseconds from its submission to its delivery at the origin."""
        self.remote_waits = array("q")
        """For each delivery elsewhere, nanoseconds from the receipt of the packet that carried the message."""
        self._raw = raw
        self._heap: list[Entry] = []
        self._next_number = counter().__next__
        self._members = len(protocols)
        self._everybody = everybody.dests
        # If packets may overtake each other anyway, a packet that is refused for lack of room does not hold up those behind it.
        self._in_order = protocols[0].links == Links.FIFO or not network.repeats_or_reorders
        self.connections = self._make_connections(protocols[0].links)
        self._one_delay_ns = None if self.connections else network.one_delay_ns()
        self._arrivals = (self.connections or network).arrivals

    def _only_noting_what_is_expected(self, site: Site) -> Callable[[int, Packet], Effects]:
        """Receive, and note the arrival of messages that will be delivered here; not of those that the site only forwards."""
        protocol, take = site.protocol, site.protocol.receive

        def receive(source: int, packet: Packet) -> Effects:
            run = packet.carried()
            if run is None or not protocol.expects(packet):
                return take(source, packet)
            key = run.first * self._members + run.origin
            known, held = key in site.receipts, protocol.held_back()
            site.note(key, run.count, self.now)
            effects = take(source, packet)
            if not known and not effects and protocol.held_back() == held:
                site.forget(key)  # A duplicate of what was delivered before.
            return effects

        return receive

    def _make_connections(self, needed: str) -> Connections | None:
        ordered = needed == Links.FIFO
        good = not self.network.loses and not (ordered and self.network.repeats_or_reorders)
        if good or self._raw:
            return None
        return Connections(self.network, ordered=ordered)

    def at(self, time_ns: int, act: Callable[[Any], None], item: Any) -> None:
        """Call act(item) at that time, after everything that is already scheduled for it."""
        heappush(self._heap, (time_ns, self._next_number(), act, item))

    def watch(self, member: int, on_delivery: Callable[[int, int], None]) -> None:
        """Call on_delivery(member, count) whenever `count` of the member's own messages are delivered to it."""
        self.sites[member].watch = on_delivery
        self.sites[member].refresh()

    def run(self) -> None:
        """Until nothing is left to happen, or `stopped` is set."""
        heap, sites, perform = self._heap, self.sites, self._perform
        while heap and not self.stopped:
            for _ in range(_CHUNK_EVENTS):
                if not heap or self.stopped:
                    break
                self.now, _, act, item = heappop(heap)
                if act is not None:
                    act(item)
                    continue
                source, packet, lamport, receivers, key, count = item
                for member in receivers:
                    site = sites[member]
                    if site.busy:
                        self._come(member, item)
                        continue
                    # The same as in _come, inlined because most of the time is spent here.
                    if key >= 0:
                        site.note(key, count, self.now)
                    try:
                        effects = site.receive(source, packet)
                    except (HoldBackFull, ProtocolViolation) as error:
                        self._refused(site, item, error)
                        continue
                    if lamport > site.clock:
                        site.clock = lamport
                    if effects:
                        perform(site, effects)
            if self.between is not None:
                self.between()

    def submit(self, member: int, count: int, body: Body, to: tuple[int, ...] | None = None) -> Run:
        """The member's application sends `count` messages, to everybody or to some, now or as soon as the member can take them.
        Raises BadInput, without effect, if they cannot be sent at all."""
        site = self.sites[member]
        run = Run(member, site.next_number, count, body)
        site.next_number += count
        if to is None or member in to:
            site.note(run.first * self._members + member, count, self.now)
        if site.paused or site.inbox.local:
            site.inbox.local.append((run, to))
            return run
        try:
            self._submit(site, run, to)
        except BadInput:
            site.next_number -= count
            if to is None or member in to:
                site.forget(run.first * self._members + member)
            raise
        return run

    def act(self, member: int, begin: Callable[[Any], Effects]) -> None:
        """Have the member's protocol begin something of its own, like a change of membership."""
        site = self.sites[member]
        self._perform(site, begin(site.protocol))

    def _submit(self, site: Site, run: Run, to: tuple[int, ...] | None) -> None:
        protocol = site.protocol
        address = 0
        if to is not None:
            address = site.log.address(Address(dests=tuple(sorted(to))))
        elif protocol.addressed and (audience := tuple(sorted(protocol.audience()))) != self._everybody:
            address = site.log.address(Address(dests=audience))
        try:
            effects = protocol.submit(run) if to is None else protocol.send(run, to)
        except WindowFull:
            # Put it back at the head of the queue, to keep the order of submission.
            site.inbox.local.appendleft((run, to))
            site.blocked = True
            site.refresh()
            return
        self._record(site, SEND, run, address)
        self._perform(site, effects)

    def _record(self, site: Site, kind: int, run: Run, address: int) -> None:
        """Record that messages were sent or delivered, one record for those of one size."""
        if not run.body.lengths:
            site.write(pack_record(kind, run.origin, run.first, run.count, site.clock + 1, self.now, address, run.body.size))
            site.clock += run.count
            return
        for number, payload in enumerate(run.payloads(), run.first):
            site.clock += 1
            site.write(pack_record(kind, run.origin, number, 1, site.clock, self.now, address, len(payload)))

    def _perform(self, site: Site, effects: Effects) -> None:
        now = self.now
        for effect in effects:
            if type(effect) is not Deliver:
                if type(effect) is Received:
                    self._record(site, RECEIVE, effect.run, site.delivered_from)
                    continue
                self._send(site, effect.packet, effect.to)  # type: ignore[union-attr]
                continue
            run = effect.run
            origin, first, count, body = run.origin, run.first, run.count, run.body
            if body.lengths:
                self._record(site, DELIVER, run, site.delivered_from)
            else:
                site.write(pack_record(DELIVER, origin, first, count, site.clock + 1, now, site.delivered_from, body.size))
                site.clock += count
            key = (first - run.skip) * self._members + origin
            received = site.receipts.pop(key, -1)
            if received >= 0:
                waits = self.origin_waits if origin == site.member else self.remote_waits
                if count == 1:
                    waits.append(now - received)
                else:
                    waits.extend([now - received] * count)
                if site.parts:
                    left = site.parts.pop(key, count) - count
                    if left:
                        site.parts[key] = left
                        site.receipts[key] = received
            if site.alert:
                self._delivered(site, run)
            if self.observe is not None:
                self.observe(site.member, effect)

    def _send(self, site: Site, packet: Packet, to: tuple[int, ...] | None) -> None:
        receivers = site.others if to is None else to
        if not receivers:
            return
        site.clock += 1
        run = packet.carried()
        payload_bytes, key, count = 0, -1, 0
        if run is not None:
            payload_bytes, key, count = len(run.body.payload), run.first * self._members + run.origin, run.count
        if self.tally is not None:
            key = -1
            self.tally.count(packet, receivers)
        code = site.log.packet_type(packet.name)
        site.write(pack_record(PACKET, len(receivers), payload_bytes, 1, site.clock, self.now, code, header_bytes(packet)))
        if self._one_delay_ns is not None:
            parcel = (site.member, packet, site.clock, receivers, key, count)
            heappush(self._heap, (self.now + self._one_delay_ns, self._next_number(), None, parcel))
            return
        for receiver in receivers:
            parcel = (site.member, packet, site.clock, (receiver,), key, count)
            for time in self._arrivals(site.member, receiver, self.now):
                heappush(self._heap, (time, self._next_number(), None, parcel))

    def _come(self, member: int, parcel: Parcel) -> None:
        """A parcel arrives at a member, which may not be able to take it now."""
        site, source = self.sites[member], parcel[0]
        if source in site.deaf:
            return
        if parcel[4] >= 0:
            site.note(parcel[4], parcel[5], self.now)
        if site.paused:
            site.inbox.remote.append(parcel)
        elif source in site.stalled and self._in_order:
            site.stalled[source].append(parcel)
        else:
            try:
                effects = site.receive(source, parcel[1])
            except (HoldBackFull, ProtocolViolation) as error:
                self._refused(site, parcel, error)
                return
            site.clock = max(site.clock, parcel[2])
            self._perform(site, effects)
            if site.protocol.wakes_on_packets:
                self._wake_soon(site)

    def _refused(self, site: Site, parcel: Parcel, error: HoldBackFull | ProtocolViolation) -> None:
        """The protocol refused a parcel: leave it on its link, or close the link of a sender that breaks the protocol."""
        if isinstance(error, HoldBackFull):
            site.stalled.setdefault(parcel[0], deque()).append(parcel)
        elif self._raw:
            site.deaf.add(parcel[0])
        else:
            # Over reliable links this is a bug of the protocol, so the run fails.
            raise error
        site.refresh()

    def _delivered(self, site: Site, run: Run) -> None:
        if site.watch is not None and run.origin == site.member:
            site.watch(site.member, run.count)
        self._wake_soon(site)

    def _wake_soon(self, site: Site) -> None:
        if (site.blocked or site.stalled) and not site.waking:
            # Not now: this step's effects must be performed before the next input.
            site.waking = True
            self.at(self.now, self._wake, site)

    def _wake(self, site: Site) -> None:
        """There may be room now: retry what was refused."""
        site.waking = site.blocked = False
        stalled, site.stalled = site.stalled, {}
        site.refresh()
        for queue in stalled.values():
            for parcel in queue:
                self._come(site.member, parcel)
        self._drain(site)

    def _drain(self, site: Site) -> None:
        inbox = site.inbox
        while inbox and not site.paused:
            if inbox.next_is_local() and not site.blocked:
                self._submit(site, *inbox.take_local())
            elif inbox.remote:
                self._come(site.member, inbox.take_remote())
            else:
                return

    def pause(self, member: int) -> None:
        """The member takes no input until it resumes; what comes waits in its inbox."""
        self.sites[member].paused = True
        self.sites[member].refresh()

    def resume(self, member: int) -> None:
        site = self.sites[member]
        site.paused = False
        site.refresh()
        self._drain(site)
