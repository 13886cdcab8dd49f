"""Records: eight integers that stand for a run of messages, or for one packet.

Recording is on the path of every delivery, so an event is written down as plain integers and nothing else. The rows of a
record's messages differ by the sequence number and the logical time alone. Members record, and start faster without numpy: what
reads records in bulk has it from `tables`.
"""

from __future__ import annotations

from struct import Struct

KIND, ORIGIN, FIRST, COUNT, LAMPORT, TIME_NS, ADDRESS, SIZE = range(8)
"""What is in a record: the kind of event, the origin and first number of its messages and how many they are, the logical time
of the first, the time, the number of their address, the bytes of each."""

FANOUT, PAYLOAD, PACKET_TYPE, HEADER = ORIGIN, FIRST, ADDRESS, SIZE
"""What a packet has in some of these columns: in how many copies it left, its payload and header in bytes, and its type."""

RECORD_FIELDS = 8
RECORD_BYTES = RECORD_FIELDS * 8

pack_record = Struct(f"={RECORD_FIELDS}q").pack
"""One record as bytes. A driver whose loop cannot afford a call for each event packs it and writes it itself."""
