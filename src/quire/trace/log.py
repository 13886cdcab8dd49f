"""The in-memory event log of one process: packed records in local order, and the names that records refer to by number.

Records are not expanded into rows here (`rows` does that), nor written to a file (`parts` does that).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

import msgspec

from quire.trace.kinds import DELIVER, PACKET, SEND, VIEW
from quire.trace.records import ADDRESS, LAMPORT, RECORD_FIELDS, pack_record
from quire.trace.views import ViewEvent, ViewMember, members_word


class Address(msgspec.Struct, frozen=True, array_like=True):
    """Where messages go, and what they do there. Records refer to an address by number, so reusing one costs nothing."""

    group: str | None = None
    """The group that they are addressed to; None if they go to individual processes."""
    dests: tuple[int, ...] | None = ()
    """The processes that must deliver them; for a view, its members. None if the sender does not know."""
    object: str | None = None
    op: str | None = None
    txn: str | None = None


class Names:
    """The addresses and packet types that a process's records refer to by number."""

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
        """The number of an address; a new address gets the next number."""
        number = self._address_numbers.setdefault(address, len(self.addresses))
        if number == len(self.addresses):
            self.addresses.append(address)
        return number

    def packet_type(self, name: str) -> int:
        """The number of a packet type; a new one gets the next number."""
        code = self._packet_codes.setdefault(name, len(self.packet_types))
        if code == len(self.packet_types):
            self.packet_types.append(name)
        return code


NAMES_OFTEN = 64
"""How many of the first names keep their numbers forever: a process uses them all the time, and may store the numbers."""


class EventLog:
    """The events of one process in local order. `addresses`: those that it will use often, numbered from 0."""

    def __init__(self, process: int, addresses: Iterable[Address] = ()) -> None:
        self.process = process
        self.names = Names(addresses)
        self.address = self.names.address
        self.packet_type = self.names.packet_type
        self._records = array("q")
        self._taken = 0
        """How many records were taken out."""
        self._deferred: dict[int, None] = {}
        """Sends whose address is not known yet, by the number of their record, in order."""
        # Copying packed bytes is four times as fast as having an array take eight integers.
        self.write = self._records.frombytes
        """Appends the bytes of `pack_record`."""

    def send(self, origin: int, first: int, count: int, lamport: int, time_ns: int, address: int, size: int) -> None:
        """`count` messages numbered from `first` were sent; the first has logical time `lamport`."""
        self.write(pack_record(SEND, origin, first, count, lamport, time_ns, address, size))

    def defer_send(self, origin: int, first: int, count: int, lamport: int, time_ns: int, address: int, size: int) -> int:
        """Like `send`, if the final address will be known later: pass the returned record to `settle` then. Until then this
        record and all after it are not taken out."""
        record = self._taken + len(self._records) // RECORD_FIELDS
        self._deferred[record] = None
        self.send(origin, first, count, lamport, time_ns, address, size)
        return record

    def settle(self, record: int, address: int) -> None:
        """Set the address of a deferred send."""
        del self._deferred[record]
        self._records[(record - self._taken) * RECORD_FIELDS + ADDRESS] = address

    def settle_rest(self) -> None:
        """Give up on the remaining deferred sends: their addresses stay as they are."""
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
        address = Address(group, dests, members_word(members), ViewEvent.INSTALL.value, str(incarnation))
        self.view(self.process, number, lamport, time_ns, self.address(address))

    def resumed(self, group: str, number: int, incarnation: int, kept: int, lamport: int, time_ns: int) -> None:
        """This process was restarted under this incarnation, and goes on in the view of this number. Of what it had delivered
        in that view before, the first `kept` messages are in its state; the others it forgot and may deliver again."""
        address = Address(group, None, str(kept), ViewEvent.RESUME.value, str(incarnation))
        self.view(self.process, number, lamport, time_ns, self.address(address))

    def happened(
        self, what: ViewEvent, group: str, number: int, incarnation: int, lamport: int, time_ns: int, others: Iterable[int] = ()
    ) -> None:
        """Something else happened to this process in the view of this number; `others` are those that it is cut off from,
        or can reach again."""
        address = Address(group, tuple(others), None, what.value, str(incarnation))
        self.view(self.process, number, lamport, time_ns, self.address(address))

    def packet(self, name: str, fanout: int, lamport: int, time_ns: int, header_bytes: int, payload_bytes: int) -> None:
        """One packet was put on the wire, in `fanout` copies."""
        self.write(pack_record(PACKET, fanout, payload_bytes, 1, lamport, time_ns, self.packet_type(name), header_bytes))

    def pending(self) -> int:
        """How many records are final and can be taken out."""
        if self._deferred:
            return next(iter(self._deferred)) - self._taken
        return len(self._records) // RECORD_FIELDS

    def reached(self, lamport: int) -> int:
        """A lower bound: all records not yet taken out, and all events after logical time `lamport`, have greater times."""
        return min(lamport, self._records[LAMPORT] - 1) if self._records else lamport

    def renew_names(self) -> bool:
        """Renumber all but the first names, so that unused ones are forgotten; False if records here still use the old
        numbers."""
        if self._records:
            return False
        old = self.names
        self.names = Names(old.addresses[:NAMES_OFTEN], old.packet_types)
        self.address, self.packet_type = self.names.address, self.names.packet_type
        return True

    def take(self) -> bytes:
        """Take out the pending records, packed."""
        pending = self.pending()
        records = self._records[: pending * RECORD_FIELDS].tobytes()
        del self._records[: pending * RECORD_FIELDS]
        self._taken += pending
        return records
