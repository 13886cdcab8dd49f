"""Records the views, sends and deliveries of a process in a group with changing membership.

The recorder sees every effect of the member before it is performed, so that packets leave with the right logical time. What a
process receives to catch up, before it is a member, is state transfer and not a delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import sha256

from quire.model.messages import Run
from quire.model.orders import Guarantee
from quire.protocols import registry
from quire.trace.log import Address, EventLog
from quire.trace.views import VIEW_BITS, Operation, ViewEvent, ViewMember, operation_word
from quire.views.codec import payload_bytes
from quire.views.core import GroupSettings
from quire.views.effects import Deliver, Effect, Exclude, Install, Leave, PacketSent, Save, Send
from quire.views.packets import Control, Data
from quire.views.process import Process
from quire.views.records import Sent
from quire.views.view import View

GROUP = "all"
"""The name of the group in its trace."""

_EVERYTHING = 1 << VIEW_BITS
_NUMBERS_MAX = 1_000_000
"""Process names that are numbers below this are used as the process's number."""


@lru_cache(maxsize=4096)
def number_of(name: str) -> int:
    """The number in logs of the process with this name."""
    if name.isdecimal() and name.isascii() and str(int(name)) == name and int(name) < _NUMBERS_MAX:
        return int(name)
    return _NUMBERS_MAX + int.from_bytes(sha256(name.encode()).digest()[:5], "big")


@lru_cache
def _name_of(packet: type) -> str:
    return packet.__name__.upper()


def promises(rules: GroupSettings) -> frozenset[Guarantee]:
    """The guarantees that the trace of a group with these rules must satisfy."""
    uniform = {Guarantee.UNIFORM} if rules.uniform else set()
    return registry.find(rules.protocol).protocol.promises | {Guarantee.VIRTUAL_SYNCHRONY, Guarantee.ONCE} | uniform


def _members(view: View) -> tuple[ViewMember, ...]:
    return tuple(ViewMember(number_of(one.name), one.incarnation) for one in view.members)


class MembershipRecorder:
    """Records one process from its start. `began` is called with the members of every view: when the process is first in one,
    or again after a restart, and with each later view."""

    def __init__(
        self, process: Process, log: EventLog, time_ns: Callable[[], int], began: Callable[[tuple[ViewMember, ...]], None]
    ) -> None:
        self._process = process
        self._log = log
        self._time_ns = time_ns
        self._began = began
        self._name = process.member.core.me.name
        self._number = number_of(self._name)
        self._incarnation = process.member.core.me.incarnation
        self._epoch = 0
        """The view that the process is in; 0 while it is in none."""
        self._rank: int | None = None
        """Its position in that view."""
        self._dests: tuple[int, ...] = ()
        self._sent = 0
        """How many of its messages in this view are recorded."""
        self._replayed: tuple[int, ...] = ()
        """For each member of the view, how many of its messages the journal had as delivered when the process resumed."""
        self._delivered_from = log.address(Address(GROUP))
        self._sent_to, self._carries = self._delivered_from, tuple[object, ...]()
        """The address of its last message, and what that depends on; it is nearly always that of the next."""
        # Greater than any logical time recorded by an earlier process of this name.
        process.lamport = max(process.lamport, time_ns())
        self._resume()
        process.on_effect = self.saw
        process.on_packet = self._packet_left

    def _resume(self) -> None:
        """After a restart, record the view in which the process resumes, and how many deliveries in it its journal has. These
        are already in the trace, because they were recorded before they were journalled, so their replay is not a delivery."""
        core = self._process.member.core
        if core.mode != "frozen" or core.view.epoch == 1:
            return
        self._epoch = core.view.epoch
        self._sent = _EVERYTHING  # It sends nothing before the next view.
        self._replayed = core.position.delivered
        kept = sum(self._replayed)
        self._began((*_members(core.view), ViewMember(self._number, self._incarnation)))
        self._log.resumed(GROUP, self._epoch, self._incarnation, kept, self._tick(), self._time_ns())

    def saw(self, effect: Effect) -> None:
        kind = type(effect)
        if kind is Deliver:
            assert isinstance(effect, Deliver)
            if effect.entry.epoch == self._epoch and not (self._replayed and self._is_replayed(effect)):
                self._record_delivery(effect)
        elif kind is Send:
            assert isinstance(effect, Send)
            data = effect.packet
            if isinstance(data, Data) and data.epoch == self._epoch and data.run.origin == self._rank:
                # Only its own messages: those it forwards were sent by others.
                self._record_send(data.run, data.session, data.number)
        elif kind is Save:
            # A process alone in a view sends to nobody, and may deliver what it has journalled only after a restart.
            assert isinstance(effect, Save)
            record = effect.record
            if isinstance(record, Sent) and record.data.epoch == self._epoch:
                self._record_send(record.data.run, record.data.session, record.data.number)
        elif kind is Install:
            assert isinstance(effect, Install)
            self._install(effect)
        elif kind is Exclude:
            self.happened(ViewEvent.EXCLUDED)
            self._epoch = 0
        elif kind is Leave:
            self.happened(ViewEvent.LEFT)
            self._epoch = 0

    def _is_replayed(self, effect: Deliver) -> bool:
        return effect.entry.run.end <= self._replayed[effect.entry.rank]

    def happened(self, what: ViewEvent, others: Iterable[int] = ()) -> None:
        """Something happened to this process, if it is in a view. `others`: whom it cannot reach, or can reach again."""
        if self._epoch:
            self._log.happened(what, GROUP, self._epoch, self._incarnation, self._tick(), self._time_ns(), others)

    def _install(self, effect: Install) -> None:
        incarnation = effect.view.incarnation(self._name) or 0
        if effect.joined:
            self._incarnation = incarnation
        # A view may name an earlier incarnation of the process, which has recorded its own sends.
        self._sent = 0 if incarnation == self._incarnation else _EVERYTHING
        self._epoch, self._replayed, self._rank = effect.view.epoch, (), effect.view.rank(self._name)
        members = _members(effect.view)
        self._began(members)
        self._dests = tuple(sorted(member.process for member in members))
        self._log.installed(GROUP, self._epoch, members, self._incarnation, self._tick(), self._time_ns())

    def _record_send(self, run: Run, session: str, number: int) -> None:
        """A run may be passed to members in several packets, and is one send all the same."""
        if run.end <= self._sent:
            return
        run, number = run.part(self._sent - run.first, run.count), number + self._sent - run.first
        self._sent = run.end
        first = self._epoch << VIEW_BITS | run.first
        carries = self._log.names, self._dests, session, number - first
        if carries != self._carries:
            word = operation_word(Operation(session, number), first)
            self._carries, self._sent_to = carries, self._log.address(Address(GROUP, self._dests, txn=word))
        size = run.payload_bytes() // run.count
        self._log.send(self._number, first, run.count, self._tick(run.count), self._time_ns(), self._sent_to, size)

    def _record_delivery(self, effect: Deliver) -> None:
        # On the path of every delivery, where other data is in the processor's caches: each function called costs much.
        entry, run, process = effect.entry, effect.entry.run, self._process
        origin, count = number_of(entry.origin), run.count
        if origin == self._number and run.end > self._sent:
            self._record_send(run, entry.session, entry.number)  # Not recorded yet if it is alone and has no journal.
        first, lamport, size = entry.epoch << VIEW_BITS | run.first, process.lamport + 1, run.payload_bytes() // count
        process.lamport += count
        self._log.deliver(origin, first, count, lamport, self._time_ns(), self._delivered_from, size)

    def _packet_left(self, sent: PacketSent) -> None:
        if not self._epoch:
            return
        packet, copies, size, lamport = sent
        name = packet.packet.name if isinstance(packet, (Data, Control)) else _name_of(type(packet))
        payload = 0 if isinstance(packet, Control) else payload_bytes(packet)
        self._log.packet(name, copies, lamport, self._time_ns(), size - payload, payload)

    def _tick(self, count: int = 1) -> int:
        """Advance the clock by `count` events, and return the logical time of the first of them."""
        self._process.lamport += count
        return self._process.lamport - count + 1
