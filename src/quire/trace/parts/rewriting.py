"""Rewrites the records of a part with the run's numbers for processes and messages.

Clients of an open run have large arbitrary numbers; in the run all processes are numbered from 0. With views, message numbers
restart in each view, and hosts of objects that come back begin with others; in the run each process's messages are numbered
consecutively. Logical times then begin near 0 and grow in steps greater than 1, which leaves room for observed events between
any two records.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from quire.trace.kinds import DELIVER, SEND, VIEW
from quire.trace.log import Address, Names
from quire.trace.parts.reader import Piece
from quire.trace.records import COUNT, FIRST, KIND, LAMPORT, ORIGIN
from quire.trace.tables import Integers
from quire.trace.views import VIEW_BITS, ViewEvent, ViewMember, members_word, parse_members, parse_operation_word

LAMPORT_STEP = 8


class Counting:
    """Maps the message numbers in each process's log to consecutive numbers."""

    def __init__(self, sends: Mapping[int, Integers]) -> None:
        self._firsts: dict[int, Integers] = {}
        self._counted: dict[int, Integers] = {}
        self._counts: dict[int, Integers] = {}
        self._total: dict[int, int] = {}
        for process, records in sends.items():
            order = np.argsort(records[:, FIRST], kind="stable")
            counts = records[order, COUNT]
            self._firsts[process], self._counts[process] = records[order, FIRST], counts
            self._counted[process] = np.cumsum(counts) - counts
            self._total[process] = int(counts.sum())

    def count(self, process: int, numbers: Integers) -> Integers:
        """The consecutive numbers; messages that were not sent come after all that were."""
        firsts = self._firsts.get(process, np.empty(0, np.int64))
        if not len(firsts):
            return numbers & ((1 << VIEW_BITS) - 1)
        run = np.maximum(np.searchsorted(firsts, numbers, side="right") - 1, 0)
        counted = self._counted[process][run] + numbers - firsts[run]
        known = (numbers >= firsts[run]) & (numbers < firsts[run] + self._counts[process][run])
        return np.where(known, counted, self._total[process] + (numbers & ((1 << VIEW_BITS) - 1)))

    def shift(self, process: int, view: int) -> int:
        """The difference between the log's and the consecutive message numbers of a process in a view."""
        first = np.array([view << VIEW_BITS], np.int64)
        return int(first[0] - self.count(process, first)[0])


class Rewriting:
    """Rewrites one process's records, piece by piece."""

    def __init__(self, process: int, numbers: Mapping[int, int], counting: Counting | None, lamport: int) -> None:
        """`numbers`: each process's number in the run. `counting`: message numbers, if there are views. `lamport`: the logical
        time before the first record."""
        self._process = process
        self._numbers = numbers
        self._counting = counting
        self._lamport = lamport
        self._from = np.array(sorted(numbers), np.int64)
        self._to = np.array([numbers[process] for process in sorted(numbers)], np.int64)
        self._names = Names()

    def __call__(self, piece: Piece) -> Piece:
        for address in piece.names.addresses[len(self._names.addresses) :]:
            # Never merge two addresses that become equal, because records refer to them by index.
            self._names.addresses.append(self._address(address))
        self._names.packet_types[:] = piece.names.packet_types
        records = piece.records.copy()
        if self._counting is not None:
            records[:, LAMPORT] = (records[:, LAMPORT] - self._lamport) * LAMPORT_STEP
        kind = records[:, KIND]
        if self._counting is not None:
            of_messages = np.isin(kind, (SEND, DELIVER))
            for origin in np.unique(records[of_messages, ORIGIN]).tolist():
                rows = of_messages & (records[:, ORIGIN] == origin)
                records[rows, FIRST] = self._counting.count(origin, records[rows, FIRST])
        of_processes = np.isin(kind, (SEND, DELIVER, VIEW))
        records[of_processes, ORIGIN] = self._to[np.searchsorted(self._from, records[of_processes, ORIGIN])]
        return Piece(self._names, records)

    def _address(self, address: Address) -> Address:
        numbers, object, txn = self._numbers, address.object, address.txn
        dests = None if address.dests is None else tuple(sorted(numbers[process] for process in address.dests))
        if self._counting is not None:
            if address.op == ViewEvent.INSTALL and object is not None:
                object = members_word(ViewMember(numbers[one.process], one.incarnation) for one in parse_members(object))
            elif address.op is None and txn is not None and (operation := parse_operation_word(txn)) is not None:
                view = -(operation.number >> VIEW_BITS)
                txn = f"{operation.session}{operation.number + self._counting.shift(self._process, view):+d}"
        return Address(address.group, dests, object, address.op, txn)
