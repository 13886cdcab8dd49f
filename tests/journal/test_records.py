"""The format: the specification's vectors; random tails that are cut off, and random damages that are not."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from quire.journal.records import SNAPSHOT, TYPES, Record, encode, encoded_bytes, holds_record, name_of, scan
from tests.kit.effort import runs

CASES = json.loads((Path(__file__).parents[1] / "golden" / "views_journal.json").read_text())
ENTRIES = [(1, b"view"), (2, b"promise"), (3, b"msg")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_journals_are_read_as_specified(case: dict[str, Any]) -> None:
    found = scan(bytes.fromhex(case["hex"]))

    if case.get("error") == "JournalCorrupt":
        assert found.verdict == "damaged"
    else:
        assert found.verdict == ("whole" if case["name"] == "whole" else "torn")
        assert (len(found.records), found.end) == (case["records"], case["end"])
        assert found.records == [Record(number, *entry) for number, entry in enumerate(ENTRIES, 1)][: case["records"]]


def test_records_are_written_as_specified() -> None:
    (whole,) = [case for case in CASES if case["name"] == "whole"]

    assert encode(1, ENTRIES).hex() == whole["hex"]
    assert encoded_bytes(ENTRIES) == whole["end"]


def test_an_empty_journal_is_whole() -> None:
    assert scan(b"") == ([], 0, "whole")


def test_types_have_names_and_others_can_be_shown_too() -> None:
    assert [name_of(type_) for type_ in range(1, 1 + len(TYPES))] == list(TYPES)
    assert name_of(SNAPSHOT) == "snapshot"
    assert (name_of(0), name_of(99)) == ("type 0", "type 99")


def some_records(random: Random, first: int) -> list[Record]:
    sizes = [random.choice((0, 1, 17, random.randrange(200))) for _ in range(random.randint(2, 12))]
    # Bodies of zeros and of other records, too, which must not be taken for what follows.
    bodies = [random.choice((random.randbytes(size), bytes(size), encode(1, [(1, bytes(size))]))) for size in sizes]
    return [Record(number, random.randint(0, 255), body) for number, body in enumerate(bodies, first)]


def written(records: list[Record]) -> bytes:
    return b"".join(encode(number, [(type_, body)]) for number, type_, body in records)


def test_of_a_torn_or_garbled_tail_nothing_synced_is_lost_and_nothing_is_invented() -> None:
    random = Random("torn tails")
    verdicts = {"whole": 0, "torn": 0, "damaged": 0}
    for _ in range(runs(2_000, 10_000)):
        first = random.choice((1, random.randrange(1, 1 << 40)))
        records = some_records(random, first)
        synced = random.randrange(len(records))
        durable, tail = written(records[:synced]), written(records[synced:])
        left = bytearray(tail[: random.randrange(len(tail) + 1)])
        if left and random.random() < 0.5:
            start = random.randrange(len(left))
            left[start:] = random.choice((bytes, random.randbytes))(len(left) - start)
        left += random.choice((b"", bytes(random.randrange(100)), random.randbytes(random.randrange(100))))

        found = scan(durable + bytes(left), first)

        assert found.records == records[: len(found.records)]
        assert len(found.records) >= synced
        assert found.end == len(written(found.records))
        verdicts[found.verdict] += 1
    assert verdicts["damaged"] == 0, "what nobody was told of may go"
    assert verdicts["whole"]
    assert verdicts["torn"] > verdicts["whole"]


def test_every_damage_before_a_whole_record_is_found_where_it_is() -> None:
    random = Random("damages")
    for _ in range(runs(2_000, 10_000)):
        first = random.choice((1, random.randrange(1, 1 << 40)))
        records = some_records(random, first)
        damaged = random.randrange(len(records) - 1)
        before = written(records)
        start, end = len(written(records[:damaged])), len(written(records[: damaged + 1]))
        data = bytearray(before)
        at = random.randrange(start, end)
        match random.choice(("bit", "zeros", "noise", "gone", "gap")):
            case "bit":
                data[at] ^= 1 << random.randrange(8)
            case "zeros":
                data[start:end] = bytes(end - start)
            case "noise":
                data[at:end] = random.randbytes(end - at)
            case "gone":
                del data[at:end]
            case "gap":
                data[at:at] = random.randbytes(random.randint(1, 50))
        if data[start:end] == before[start:end]:
            continue  # Chance put there what was there before.

        found = scan(bytes(data), first)

        assert found.verdict == "damaged"
        assert (found.records, found.end) == (records[:damaged], start)


def test_a_record_that_is_missing_is_damage_but_an_old_one_once_more_is_not() -> None:
    assert scan(encode(1, ENTRIES[:1]) + encode(3, ENTRIES[2:])).verdict == "damaged"
    assert scan(encode(1, ENTRIES) + encode(2, ENTRIES[1:2])) == (scan(encode(1, ENTRIES)).records, 65, "torn")


def test_a_record_is_found_anywhere_in_a_long_tail() -> None:
    noise = Random(1).randbytes(1 << 19)
    zeros = bytes(1 << 20)
    for tail in (noise, zeros, noise + zeros, noise[:1000] + zeros + noise):
        assert not holds_record(tail, 0, 7)
        assert holds_record(tail + encode(7, [(1, b"later")]), 0, 7)
        assert holds_record(tail + encode(9, [(1, zeros)]) + tail, 0, 7)
        assert not holds_record(tail + encode(6, [(1, b"earlier")]), 0, 7)
