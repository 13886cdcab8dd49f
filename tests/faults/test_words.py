"""The words for faults: what they mean, that they come back as they were, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire.model.errors import BadInput
from quire.model.faults import (
    Cut,
    Fault,
    Full,
    Kill,
    Partition,
    Restart,
    Stop,
    check_faults,
    end_ms,
    parse_faults,
    render_faults,
    unreachable,
)

members = st.integers(0, 63)
moments = st.integers(0, 3_600_000)
durations = st.integers(1, 3_600_000)
sides = st.lists(members, min_size=1, max_size=4).map(tuple)
faults: st.SearchStrategy[Fault] = st.one_of(
    st.builds(Kill, members, moments),
    st.builds(Restart, members, moments),
    st.builds(Stop, members, moments, durations),
    st.builds(Full, members, moments, durations),
    st.builds(Partition, st.lists(sides, min_size=1, max_size=3).map(tuple), moments, durations),
    st.builds(Cut, sides, sides, moments, durations),
)


@given(st.lists(faults, min_size=1, max_size=6).map(tuple))
def test_words_of_faults_mean_these_faults(some: tuple[Fault, ...]) -> None:
    assert parse_faults(render_faults(some)) == some


def test_the_words_are_those_of_people() -> None:
    text = "kill 2@1s, stop 3@2s for 4s, partition 0,1|2,3,4@8s for 5s, restart 2@10s, cut 0>1,2@1.5s for 250ms, "
    text += "full 4@3s for 2s, kill 1@2m"
    assert parse_faults(text) == (
        Kill(2, 1000),
        Stop(3, 2000, 4000),
        Partition(((0, 1), (2, 3, 4)), 8000, 5000),
        Restart(2, 10_000),
        Cut((0,), (1, 2), 1500, 250),
        Full(4, 3000, 2000),
        Kill(1, 120_000),
    )
    assert render_faults(parse_faults(text)) == text


def test_spaces_and_lines_do_not_matter() -> None:
    assert parse_faults(" kill  2@1s,\n  partition 0, 1 | 2@ 8s for 5s ,restart 2@10s") == parse_faults(
        "kill 2@1s, partition 0,1|2@8s for 5s, restart 2@10s"
    )


def test_it_is_over_when_the_last_fault_is() -> None:
    assert end_ms(parse_faults("stop 3@2s for 9s, kill 2@10s")) == 11_000
    assert end_ms(()) == 0


def test_a_partition_is_in_both_directions_and_a_cut_is_not() -> None:
    partition, cut = parse_faults("partition 0|1,2@1s for 1s, cut 0>1,2@1s for 1s")
    assert isinstance(partition, Partition)
    assert isinstance(cut, Cut)
    assert unreachable(partition) == {(0, 1), (0, 2), (1, 0), (2, 0)}
    assert unreachable(cut) == {(0, 1), (0, 2)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot read the fault ''; it begins with one of kill, restart, stop, full, partition, cut, as in 'kill 2@1s'"),
        ("kill 2@1s,", "cannot read the fault ''; it begins with"),
        ("murder 2@1s", "cannot read the fault 'murder 2@1s'; it begins with one of kill"),
        ("kill 2", "cannot read the fault 'kill 2'; write it like 'kill 2@1s'"),
        ("kill 1,2@1s", "cannot read the fault 'kill 1,2@1s'; write it like 'kill 2@1s'"),
        ("kill 2@1", "cannot read the time '1' of the fault 'kill 2@1'; write it like 250ms, 1.5s or 2m"),
        ("kill 2@1.0001s", "the time 1.0001s of the fault 'kill 2@1.0001s' is not a whole number of milliseconds"),
        ("kill 2@9999m", "the time 9999m of the fault 'kill 2@9999m' is longer than a day"),
        ("kill 2@1s for 2s", "a kill has no duration; write it like 'kill 2@1s'"),
        ("stop 3@2s", "does not say for how long; write it like 'stop 3@2s for 4s'"),
        ("full 3@2s", "does not say for how long; write it like 'full 1@3s for 2s'"),
        ("stop 3@2s for 0s", "does not say for how long"),
        ("partition 0,1|2,@8s for 5s", "write it like 'partition 0,1|2,3,4@8s for 5s'"),
        ("cut 0>1>2@8s for 5s", "write it like 'cut 0>1@3s for 2s'"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_faults(text)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kill 5@1s", "'kill 5@1s' names member 5, but a group of 5 has members 0 to 4"),
        ("partition 0|7@1s for 1s", "names member 7"),
        ("partition 0,1@1s for 1s", "has only one side; separate the sides with |"),
        ("partition 0,1|1,2@1s for 1s", "has a member on two sides"),
        ("cut 0>0@1s for 1s", "has a member on two sides"),
        ("restart 2@1s", "'restart 2@1s' restarts a running member; kill it first"),
        ("restart 2@1s, kill 2@2s", "'restart 2@1s' restarts a running member"),
        ("kill 2@1s, kill 2@2s", "'kill 2@2s' affects a member that is not running; restart it first"),
        ("kill 2@1s, stop 2@2s for 1s", "'stop 2@2s for 1s' affects a member that is not running"),
        ("stop 2@1s for 4s, stop 2@3s for 1s", "stops a member that is already stopped until 5s; merge the two"),
        ("full 2@1s for 4s, kill 2@3s", "'kill 2@3s' affects a member whose disk is full until 5s; start this one later"),
        ("stop 2@1s for 4s, full 2@3s for 1s", "affects a member that is stopped until 5s and writes nothing"),
        ("kill 0@1s, kill 1@1s, kill 2@1s, kill 3@1s, kill 4@1s", "leave no member running at the end"),
    ],
)
def test_what_a_group_of_five_cannot_have_is_refused_in_a_sentence(text: str, says: str) -> None:
    with pytest.raises(BadInput) as refusal:
        check_faults(parse_faults(text), 5)
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    "text",
    [
        "restart 2@10s, kill 2@1s",
        "stop 2@1s for 4s, kill 2@2s, restart 2@3s, stop 2@4s for 1s",
        "partition 0|1@1s for 4s, partition 0,1|2,3@2s for 1s, cut 3>0@2s for 9s",
        "kill 0@1s, kill 1@1s, kill 2@1s, kill 3@1s, kill 4@1s, restart 0@2s, restart 1@2s, restart 2@2s",
    ],
)
def test_faults_may_come_together_and_in_any_order_of_words(text: str) -> None:
    check_faults(parse_faults(text), 5)
