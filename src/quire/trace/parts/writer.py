"""Writes a trace part: its description at the start, and its log as it grows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from quire.trace.parts.description import DESCRIPTION_SUFFIX, LOG_SUFFIX, PartDescription, PartEnd
from quire.trace.parts.frames import END, NAMES, RECORDS, NewNames, pack_frame
from quire.trace.records import RECORD_BYTES

# Frames are kept short, because readers hold one in memory at a time.
_RECORDS_BYTES = (1 << 14) * RECORD_BYTES
_ADDRESSES = 1 << 10


class PartWriter:
    """One process's part in a directory. What was appended can be read by others as soon as `append` returns."""

    def __init__(self, directory: Path, description: PartDescription) -> None:
        """Writes the description. Raises OSError."""
        self.description = description
        self.log_path = directory / f"{description.stem}{LOG_SUFFIX}"
        self.description_path = directory / f"{description.stem}{DESCRIPTION_SUFFIX}"
        directory.mkdir(parents=True, exist_ok=True)
        # Unbuffered, because readers that follow the log see only what has left this process.
        self._file = self.log_path.open("xb", buffering=0)
        self._describe()

    def _describe(self) -> None:
        partial = self.description_path.with_suffix(".partial")
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(self.description)) + b"\n")
        # The rename makes the description appear complete, with the log beside it.
        os.replace(partial, self.description_path)

    def meet(self, met: Iterable[tuple[int, int]]) -> None:
        """Record that the process shared a view with these, so that their parts belong to the same run. Raises OSError."""
        new = [each for each in met if each not in self.description.met]
        if new:
            self.description = msgspec.structs.replace(self.description, met=(*self.description.met, *new))
            self._describe()

    def append(self, new: NewNames, records: bytes) -> None:
        """Add records, and before them the names that are new in them. Raises OSError."""
        for names in _bounded(new):
            self._write(pack_frame(NAMES, msgspec.msgpack.encode(names)))
        for start in range(0, len(records), _RECORDS_BYTES):
            self._write(pack_frame(RECORDS, records[start : start + _RECORDS_BYTES]))

    def close(self) -> None:
        """Close the log. Idempotent."""
        self._file.close()

    def end(self, end: PartEnd) -> None:
        """Write the end record, and close the log. Raises OSError."""
        self._write(pack_frame(END, msgspec.msgpack.encode(end)))
        self.close()

    def _write(self, frame: bytes) -> None:
        rest = memoryview(frame)
        while rest:
            rest = rest[self._file.write(rest) :]


def _bounded(new: NewNames) -> Iterator[NewNames]:
    if new.packet_types:
        yield NewNames(packet_types=new.packet_types)
    for start in range(0, len(new.addresses), _ADDRESSES):
        yield NewNames(new.addresses[start : start + _ADDRESSES])
