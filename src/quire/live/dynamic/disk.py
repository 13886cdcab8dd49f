"""The journal of a member of a changing group: its records to bytes, and back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path

from quire.journal.journal import Recovered
from quire.journal.records import SNAPSHOT, TYPES
from quire.live.journals import ProcessJournal
from quire.views import records
from quire.views.codec import GroupCodec
from quire.views.effects import Save
from quire.views.records import Caught, Kept, Record

_TYPES: dict[type, int] = {
    kind: 1 + TYPES.index(name)
    for kind, name in (
        (records.Started, "incarnation"),
        (records.Entered, "view"),
        (records.Kept, "view"),
        (records.Promised, "promise"),
        (records.Voted, "accept"),
        (records.Took, "held"),
        (records.Submitted, "op"),
        (records.Sent, "held"),
        (records.Delivered, "delivered"),
        (records.Learned, "delivered"),
        (records.Decided, "decision"),
        (records.Caught, "session"),
    )
}


class MemberJournal(ProcessJournal[list[Record]]):
    def __init__(self, path: Path, codec: GroupCodec) -> None:
        self._codec = codec
        super().__init__(path, lambda recovered: list(self._read(recovered)))

    def _read(self, recovered: Recovered) -> Iterator[Record]:
        state = recovered.snapshot and recovered.snapshot.chunks()
        for each in recovered.records:
            if each.type == SNAPSHOT:
                continue  # A record of the journal itself.
            record = self._codec.record(each.body)
            yield record
            if isinstance(record, Kept) and state is not None:
                yield Caught(record.position, record.table, b"".join(state))
                state = None

    def save(self, effect: Save) -> None:
        self.keep(effect.number, (_TYPES[type(effect.record)], *self._codec.encode_record(effect.record)))

    def checkpoint(self, kept: Kept, snapshot: Awaitable[Iterator[bytes]]) -> asyncio.Task[None]:
        """Start the journal afresh with the records that are still needed, and with the application's present state."""
        return self.begin_anew(((_TYPES[Kept], *self._codec.encode_record(kept)),), snapshot)
