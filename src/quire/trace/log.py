"""A process's events as they happen: records in local order, and what their numbers mean.

Nothing is spread out into rows here (`rows` does that), and nothing is written to a file (`parts` does that).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import msgspec

from quire.trace.kinds import DELIVER, PACKET, SEND, VIEW
from quire.trace.records import ADDRESS, LAMPORT, RECORD_FIELDS, pack_record
from quire.trace.views import Happening, ViewMember, members_word


class Address(msgspec.Struct, frozen=True, array_like=True):
    """Whom messages go to, and what they do there. Records name an address by its number, so that one that is
    used again and again costs nothing."""

    group: str | None = None
    """The group that they are addressed to; None: these processes alone."""
    dests: tuple[int, ...] | None = ()
    """The processes that must deliver them; of a view, its members. None: the sender does not know."""
    object: str | None = None
    op: str | None = None
    txn: str | None = None


class Names:
    """What the numbers in a process's records mean: addresses and types of packets, each in the order of their numbers."""

    def __init__(self, addresses: Iterable[Address] = (), packet_types: Iterable[str] = ()) -> None:
        self.addresses: list[Address] = []
        self.packet_types: list[str] = []
        self._address_numbers: dict[Address, int] = {}
        self._packet_codes: dict[str, int] = {}
        for address in addresses:
            self.address(address)
        for name in packet_types:
            self.packet_type(name)

    def address(self, address: Address) -> int:
        """The number of an address, which is new where it was never asked for."""
        number = self._address_numbers.setdefault(address, len(self.addresses))
        if number == len(self.addresses):
            self.addresses.append(address)
        return number

    def packet_type(self, name: str) -> int:
        """The code of a type of packet, likewise."""
        code = self._packet_codes.setdefault(name, len(self.packet_types))
        if code == len(self.packet_types):
            self.packet_types.append(name)
        return code


NAMES_OFTEN = 64
"""The first names are those that a process uses all the time; it may know their numbers by heart."""


class EventLog:
    """The events of one process in local order. `addresses` are those that it will use often, numbered from 0."""

    def __init__(self, process: int, addresses: Iterable[Address] = ()) -> None:
        self.process = process
        self.names = Names(addresses)
        self.address = self.names.address
        self.packet_type = self.names.packet_type
        self._records = array("q")
        self._taken = 0
        """How many records are here no more."""
        self._deferred: dict[int, None] = {}
        """Sends whose address is not known yet, by the number of their record, in order."""
        # Copying packed bytes is four times as fast as having an array take eight integers.
        self.write = self._records.frombytes
        """Takes the bytes of `pack_record`."""

    def send(self, origin: int, first: int, count: int, lamport: int, time_ns: int, address: int, size: int) -> None:
        """`count` messages numbered from `first` were sent; the first has logical time `lamport`."""
        self.write(pack_record(SEND, origin, first, count, lamport, time_ns, address, size))

    def defer_send(self, origin: int, first: int, count: int, lamport: int, time_ns: int, address: int, size: int) -> int:
        """The same where a better address will be known later: `settle` what is returned when it is. Until then this
        record, and all after it, stay here."""
        record = self._taken + len(self._records) // RECORD_FIELDS
        self._deferred[record] = None
        self.send(origin, first, count, lamport, time_ns, address, size)
        return record

    def settle(self, record: int, address: int) -> None:
        """Say whom the messages of a deferred send go to."""
        del self._deferred[record]
        self._records[(record - self._taken) * RECORD_FIELDS + ADDRESS] = address

    def settle_rest(self) -> None:
        """Nobody will ever know better whom the rest went to."""
        self._deferred.clear()

    def deliver(self, origin: int, first: int, count: int, lamport: int, time_ns: int, address: int, size: int) -> None:
        self.write(pack_record(DELIVER, origin, first, count, lamport, time_ns, address, size))

    def view(self, who: int, number: int, lamport: int, time_ns: int, address: int) -> None:
        """A change of a group's membership took effect here: `who` joined or left (the address's op says which).

        Where all members agree on numbered views, `installed`, `resumed` and `happened` make the address."""
        self.write(pack_record(VIEW, who, number, 1, lamport, time_ns, address, 0))

    def installed(
        self, group: str, number: int, members: Sequence[ViewMember], incarnation: int, lamport: int, time_ns: int
    ) -> None:
        """This process, in this incarnation, installed the view of this number; `members` are in the order of seniority."""
        dests = tuple(member.process for member in members)
        address = Address(group, dests, members_word(members), Happening.INSTALL.value, str(incarnation))
        self.view(self.process, number, lamport, time_ns, self.address(address))

    def resumed(self, group: str, number: int, incarnation: int, kept: int, lamport: int, time_ns: int) -> None:
        """This process was restarted under this incarnation, and goes on in the view of this number. Of what it had delivered
        in that view before, the first `kept` messages are in its state; the others it forgot and may deliver again."""
        address = Address(group, None, str(kept), Happening.RESUME.value, str(incarnation))
        self.view(self.process, number, lamport, time_ns, self.address(address))

    def happened(
        self, what: Happening, group: str, number: int, incarnation: int, lamport: int, time_ns: int, others: Iterable[int] = ()
    ) -> None:
        """Something else happened to this process in the view of this number; `others` are those that it is cut off from,
        or can reach again."""
        address = Address(group, tuple(others), None, what.value, str(incarnation))
        self.view(self.process, number, lamport, time_ns, self.address(address))

    def packet(self, name: str, fanout: int, lamport: int, time_ns: int, header_bytes: int, payload_bytes: int) -> None:
        """One packet was put on the wire, in `fanout` copies."""
        self.write(pack_record(PACKET, fanout, payload_bytes, 1, lamport, time_ns, self.packet_type(name), header_bytes))

    def pending(self) -> int:
        """How many records are here that nothing is to be said about any more."""
        if self._deferred:
            return next(iter(self._deferred)) - self._taken
        return len(self._records) // RECORD_FIELDS

    def reached(self, lamport: int) -> int:
        """Everything that is still to be taken, or comes after this logical time, has a greater logical time than what is
        returned."""
        return min(lamport, self._records[LAMPORT] - 1) if self._records else lamport

    def renew_names(self) -> bool:
        """Number all but the first names anew, so that those that are never used again are forgotten; False where records
        that are here still have the old numbers."""
        if self._records:
            return False
        old = self.names
        self.names = Names(old.addresses[:NAMES_OFTEN], old.packet_types)
        self.address, self.packet_type = self.names.address, self.names.packet_type
        return True

    def take(self) -> bytes:
        """The pending records, packed; from then on they are here no more."""
        pending = self.pending()
        records = self._records[: pending * RECORD_FIELDS].tobytes()
        del self._records[: pending * RECORD_FIELDS]
        self._taken += pending
        return records
