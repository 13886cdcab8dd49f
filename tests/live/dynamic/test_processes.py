"""Real processes under load: killed, stopped, all of them at once, and started again."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.live.dynamic.kit import places
from tests.live.dynamic.process import Started


@contextmanager
def processes(names: str = "abc", **settings: Any) -> Iterator[dict[str, Started]]:
    where = places("tcp", names)
    journals: Path | None = settings.pop("journals", None)
    started: dict[str, Started] = {}
    try:
        for name in names:
            journal = {} if journals is None else {"journal": str(journals / name)}
            started[name] = Started(me=name, members=where, **journal, **settings)
        for one in started.values():
            one.until(lambda one: bool(one.all("ready")))
        yield started
    finally:
        for one in started.values():
            one.kill()


def is_one_order(orders: Sequence[list[str]]) -> bool:
    """Whether each is a beginning of the longest."""
    longest = max(orders, key=len)
    return all(order == longest[: len(order)] for order in orders)


def test_one_of_three_is_killed_under_load_the_others_go_on_and_it_comes_back_as_a_new_member() -> None:
    """The timeout is long: whoever is killed is missed because nobody listens at its address any more."""
    with processes(timeout_s=30) as started:
        for one in started.values():
            one.acks(50)
        started["a"].kill()
        survivors = [started["b"], started["c"]]
        for one in survivors:
            one.is_in("b", "c")
            one.acks(50)
        lost = set(started["a"].all("acked"))
        for one in survivors:
            one.until(lambda one: lost <= set(one.delivered))
        assert is_one_order([one.delivered for one in started.values()])
        again = Started(**started["a"].settings)
        try:
            again.acks(10)
            assert again.all("view")[-1] == ["b", "c", "a"]
            since = set(again.all("acked"))
            for one in survivors:
                one.until(lambda one: since <= set(one.delivered))
        finally:
            again.kill()


def test_a_process_that_is_stopped_for_longer_than_the_timeout_is_excluded_and_comes_back() -> None:
    with processes(timeout_s=0.5) as started:
        a, b, c = started.values()
        for one in started.values():
            one.acks(20)
        c.signal(signal.SIGSTOP)
        for one in (a, b):
            one.is_in("a", "b")
            one.acks(50)
        before = len(c.all("excluded"))  # More than none if it was stopped because the machine was busy.
        c.signal(signal.SIGCONT)
        c.until(lambda one: len(one.all("excluded")) > before)
        for one in (a, b, c):
            one.is_in("a", "b", "c")
        c.acks(20)
        acked = set(c.all("acked"))
        for one in (a, b):
            one.until(lambda one: acked <= set(one.delivered))
        # It delivered nothing that the others lack, and missed nothing meanwhile.
        assert is_one_order([one.delivered for one in (a, b, c)])
        delivered = c.delivered
        assert len(set(delivered)) == len(delivered)


def test_all_are_killed_at_once_and_restarted_from_their_journals_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with processes(journals=tmp_path, timeout_s=2) as started:
        for one in started.values():
            one.acks(50)
        for one in started.values():
            one.signal(signal.SIGKILL)
        for one in started.values():
            one.kill()
        acked = {payload for one in started.values() for payload in one.all("acked")}
        before = [one.delivered for one in started.values()]
        assert is_one_order(before)
        again = {name: Started(**one.settings) for name, one in started.items()}
        try:
            for one in again.values():
                one.acks(20)
            for one in again.values():
                one.until(lambda one: acked <= set(one.delivered))
                delivered = one.delivered
                assert delivered[: len(max(before, key=len))] == max(before, key=len)
                assert len(set(delivered)) == len(delivered)
            assert is_one_order([one.delivered for one in again.values()])
        finally:
            for one in again.values():
                one.kill()


def test_a_process_ends_its_group_for_all() -> None:
    with processes() as started:
        for one in started.values():
            one.acks(10)
        started["b"].end("close")
        for one in (started["a"], started["c"]):
            one.end("close")
        delivered = [one.delivered for one in started.values()]
        assert delivered[0] == delivered[1] == delivered[2]
        assert {payload for one in started.values() for payload in one.all("acked")} <= set(delivered[0])
