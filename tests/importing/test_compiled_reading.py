"""What compiled loops find in the bytes of logs is what RE2 and the parser of JSON find."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from quire.model.errors import BadInput
from quire.pipeline.importing.clock_texts import read_clocks
from quire.pipeline.importing.formats.shiviz import Layout, find_matches, scan
from quire.pipeline.importing.layouts import COLUMNS, PARSERS, compiled_search
from quire.pipeline.importing.texts import read_times
from quire.pipeline.importing.values import parse_clock, parse_time

COMPILED = [name for name, regex in PARSERS.items() if compiled_search(regex) is not None]
PIECES = [
    "\n", "\n", " ", " {", "{", "}", "}\n", "} ", "a", "7", "12 ", "\r", "\t", "\v", "é", "x_", '"', "host {}", 'b {"b":1}',
    "\n8 said\nc {}", "\nd {} told", "}\r\n",
]  # fmt: skip


def test_most_layouts_have_a_loop_of_their_own() -> None:
    assert COMPILED == ["two-lines", "clock-first", "one-line", "timed"]


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_search_finds_what_re2_finds(name: str) -> None:
    layout, rng, most = Layout(PARSERS[name], None), random.Random(name), 0
    for _ in range(1_500):
        data = "".join(rng.choices(PIECES, k=rng.randint(1, 60))).encode()
        first, own = sorted(rng.choices([0, *(at + 1 for at, byte in enumerate(data) if byte == 10), len(data)], k=2))
        expected = np.array(list(scan(layout, data, first, own, [])), np.int64).reshape(-1, COLUMNS)

        found = find_matches(layout, data, first, own, [])

        assert found.tolist() == expected.tolist(), (data, first, own)
        most = max(most, len(found))
    assert most >= 3


CLOCKS = [
    '{"a":1}', '{}', '{ "a" : 1 , "b":22}', '{"a":0,"b":3}', '{"é":1}', '{"a":1,"a":2}', '{"a":1,}', '{"a":-1}', '{"a":01}',
    '{"a":1.0}', '{"a":"1"}', '{"a\\u0062":1}', '{"":1}', '{"":0}', '{"..":1}', '{"=x":2}', '{"-3":2}',
    '{"a":9007199254740991}',
    '{"a":9007199254740992}', '{"a":99999999999999999999}', '{"a":1}}', '{"a":1', '{a:1}', '{"a" 1}', '[1]', '{"a":{"b":1}}',
    '{\\"n1\\":4}', '{"a":1,"b":2,"c":3,"d":4}', '{"a":1}\t', '{"x":0,"x":0}', "",
]  # fmt: skip


UNUSUAL = {'{"a\\u0062":1}', '{"a":9007199254740991}', '{\\"n1\\":4}', '{"a":1}\t'}


def test_a_clock_is_read_as_by_the_parser_of_json_or_left_to_it() -> None:
    rng, read = random.Random(1), 0
    for _ in range(300):
        texts = [text.encode() for text in rng.choices(CLOCKS, k=rng.randint(1, 12))]
        data = b"h" + b"".join(texts)
        ends = 1 + np.cumsum([len(text) for text in texts])
        spans = np.stack((ends - [len(text) for text in texts], ends), axis=1)
        hosts = np.tile(np.array([0, 1]), (len(texts), 1))

        clocks = read_clocks(np.frombuffer(data, np.uint8), spans, hosts)

        columns = {name: column.to_pylist() for name, column in clocks.columns().items()}
        for row, text in enumerate(texts):
            if clocks.lengths[row] < 0:
                assert not columns["clock_hosts"][row]
                continue
            names = [clocks.names[code] for code in columns["clock_hosts"][row]]
            assert dict(zip(names, columns["clock_counts"][row], strict=True)) == parse_clock(text, "here")
            read += 1
        assert {clocks.names[code] for code in clocks.host} == {"h"}
    assert read > 300


@pytest.mark.parametrize("text", CLOCKS)
def test_what_no_clock_is_or_an_unusual_one_is_left_to_the_parser(text: str) -> None:
    """So that whoever reads it says what is wrong."""
    data = np.frombuffer(b"h" + text.encode(), np.uint8)
    clocks = read_clocks(data, np.array([[1, len(data)]]))

    try:
        parse_clock(text, "here")
        right = True
    except BadInput:
        right = False
    assert (clocks.lengths[0] >= 0) == (right and text not in UNUSUAL)


def test_a_clock_of_more_names_than_there_is_room_for_is_left_to_the_parser() -> None:
    text = json.dumps({f"host{number}": 1 for number in range(20_000)}).encode()
    data = np.frombuffer(b"h" + text, np.uint8)

    clocks = read_clocks(data, np.array([[1, len(data)]]))

    assert clocks.lengths[0] == -1
    assert len(parse_clock(text, "here")) == 20_000


TIMES = [
    "", "0", "1500", "-3", "+4", "1" * 18, "9" * 19, "9" * 20, "1.5", "2015-03-01 10:00:00.5", "2015-03-01T10:00:00",
    "2015-03-01T10:00:00.123456789", "2015-03-01T10:00:00Z", "2015-03-01T10:00:00+01:00", "2015-02-30 10:00:00",
    "2015-03-01 25:00:00", "1700-01-01 00:00:00", "01/Mar/2015:10:00:00 +0000", "yesterday", "2015-03-01",
    "9999-01-01T00:00:00", "0001-01-01T00:00:00Z", "1 Jan 2020 1:1:99999999999999999999",
]  # fmt: skip


def test_times_in_a_column_are_those_of_each_by_itself() -> None:
    rng = random.Random(2)
    for _ in range(100):
        texts = rng.choices(TIMES, k=rng.randint(1, 8))

        found = read_times(pa.array(texts, pa.string())).to_pylist()

        assert found == [parse_time(text) if text else None for text in texts]
