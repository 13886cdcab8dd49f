"""The record format: eight integers that stand for a range of consecutive messages, or for one packet.

Recording is on the path of every delivery, so an event is stored as plain integers only. The rows of a record's messages differ
only in sequence number and logical time. This module does without numpy, so that members start faster; code that reads records
in bulk uses `tables`.
"""

from __future__ import annotations

from struct import Struct

KIND, ORIGIN, FIRST, COUNT, LAMPORT, TIME_NS, ADDRESS, SIZE = range(8)
"""The fields of a record: kind of event, origin, first message number, number of messages, logical time of the first, time,
number of the address, and size of each message in bytes."""

FANOUT, PAYLOAD, PACKET_TYPE, HEADER = ORIGIN, FIRST, ADDRESS, SIZE
"""What these fields hold for a packet: the number of copies, the payload and header sizes in bytes, and its type."""

RECORD_FIELDS = 8
RECORD_BYTES = RECORD_FIELDS * 8

pack_record = Struct(f"={RECORD_FIELDS}q").pack
"""Packs one record into bytes. A driver whose loop cannot afford a method call per event packs and writes records itself."""
