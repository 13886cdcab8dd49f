"""Reconstructs sends that a process made but did not live to record, from the deliveries of others.

If numbers in a group's log follow from counting messages, none may be missing. So the messages that others delivered are added
after the last record of their sender, together with those that must have come between them, whatever their destinations,
because a process numbers its messages without gaps. Each gets a logical time that is certainly before all its deliveries and
after all recorded events.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from quire.trace.kinds import DELIVER, SEND
from quire.trace.log import Address, Names
from quire.trace.parts.reader import Piece
from quire.trace.records import ADDRESS, COUNT, FIRST, KIND, ORIGIN, RECORD_FIELDS, SIZE
from quire.trace.tables import Integers

Delivered = dict[int, tuple[str | None, int]]
"""By message number: the group and the size in bytes."""


def deliveries_of(origins: Iterable[int], pieces: Iterable[Piece]) -> dict[int, Delivered]:
    """The messages of each of these processes that were delivered anywhere."""
    found: dict[int, Delivered] = {origin: {} for origin in origins}
    for piece in pieces:
        for origin, messages in found.items():
            for record in piece.records[(piece.records[:, KIND] == DELIVER) & (piece.records[:, ORIGIN] == origin)]:
                about = piece.names.addresses[int(record[ADDRESS])].group, int(record[SIZE])
                first = int(record[FIRST])
                messages.update(dict.fromkeys(range(first, first + int(record[COUNT])), about))
    return found


def unrecorded_sends(process: int, sends: Integers, delivered: Delivered, names: Names, lamport: int, time_ns: int) -> Piece:
    """The sends that are not among the recorded ones. `lamport` and `time_ns` are those of the last record."""
    after = Names()
    after.addresses[:], after.packet_types[:] = names.addresses, names.packet_types
    next_number = int((sends[:, FIRST] + sends[:, COUNT]).max(initial=0))
    rows = []
    for number in range(next_number, max(delivered, default=-1) + 1):
        group, size = delivered.get(number, (None, 0))
        lamport += 1
        rows.append((SEND, process, number, 1, lamport, time_ns, after.address(Address(group, None)), size))
    return Piece(after, np.array(rows, np.int64).reshape(-1, RECORD_FIELDS))
