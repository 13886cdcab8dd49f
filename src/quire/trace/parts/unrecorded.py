"""What a process sent and did not live to record, as those who delivered it know.

Where messages are counted to know their numbers in a group, none of them may be missing. So the messages that others delivered
are put behind the last record of their sender, and those that must have come between them, to whomever: it numbers what it
sends without gaps. Each has a logical time that is certain to be before all deliveries of it, and after all that is recorded.
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
"""By the number of a message: its group, and its bytes."""


def deliveries_of(origins: Iterable[int], pieces: Iterable[Piece]) -> dict[int, Delivered]:
    """What somebody delivered of each of these processes."""
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
