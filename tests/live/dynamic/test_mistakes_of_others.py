"""What other systems have been seen to do when their leader was cut off and came back, and must not happen here.

One run is made: the senior of three is cut off for five seconds while everybody sends, and comes back. Each test looks at one
thing that went wrong elsewhere. That a member says that it is current only when it is, `test_states.py` shows.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise

import msgspec
import pytest

import quire
from quire.live import clock
from tests.live.dynamic.kit import Member, cut_off, founded, mend, run

CUT_S, AFTERWARDS_S = 5.0, 5.0
SENDS_S = 0.01
HEALING_S = 0.2
TIMEOUT_S = 1.0


class Watched(msgspec.Struct):
    """One member: what it was told to be done, what it delivered and when, and how long it waited to send at most."""

    submitted: list[bytes] = []
    acknowledged: list[bytes] = []
    delivered: list[bytes] = []
    at: list[float] = []
    longest_send_s: float = 0.0
    members_seen: list[tuple[str, ...]] = []

    def longest_pause_s(self, begin: float, end: float) -> float:
        inside = [begin, *(moment for moment in self.at if begin < moment < end), end]
        return max(later - earlier for earlier, later in pairwise(inside))


class Outcome(msgspec.Struct):
    members: dict[str, Watched]
    cut_at: float
    healed_at: float
    ended_at: float
    delivered_when_healed: int
    """How much the member that was cut off had delivered until then."""


async def _watch(member: Member, watched: Watched, stop: asyncio.Event) -> None:
    """Send steadily, and note everything."""
    open_: set[asyncio.Task[None]] = set()

    async def execute(payload: bytes) -> None:
        with suppress(quire.QuireError):
            began = clock.now()
            future = member.group.submit(payload)
            watched.longest_send_s = max(watched.longest_send_s, clock.now() - began)
            await future
            watched.acknowledged.append(payload)

    seen, number = 0, 0
    while not stop.is_set():
        payload = f"{member.group.me}:{number}".encode()
        watched.submitted.append(payload)
        task = asyncio.ensure_future(execute(payload))
        open_.add(task)
        task.add_done_callback(open_.discard)
        number += 1
        await asyncio.sleep(SENDS_S)
        for event in member.events[seen:]:
            if isinstance(event, quire.ViewMessage):
                watched.delivered.append(event.payload)
                watched.at.append(clock.now())
            elif isinstance(event, quire.View):
                watched.members_seen.append(event.members)
        seen = len(member.events)
    await asyncio.gather(*open_)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    found: list[Outcome] = []

    async def main() -> None:
        async with founded("memory", timeout_s=TIMEOUT_S) as members:
            watched = {name: Watched() for name in members}
            stop = asyncio.Event()
            watching = [asyncio.ensure_future(_watch(members[name], each, stop)) for name, each in watched.items()]
            await asyncio.sleep(1)
            cut_at = clock.now()
            cut_off(str(members["a"].group.settings.address))
            await asyncio.sleep(CUT_S)
            healed_at, delivered = clock.now(), len(watched["a"].delivered)
            mend(str(members["a"].group.settings.address))
            await asyncio.sleep(AFTERWARDS_S)
            ended_at = clock.now()
            stop.set()
            await asyncio.gather(*watching)
            for name, member in members.items():
                await member.has(*(payload for each in watched.values() for payload in each.acknowledged))
                watched[name].delivered = member.payloads
            found.append(Outcome(watched, cut_at, healed_at, ended_at, delivered))

    run("memory", main())
    return found[0]


def test_a_deposed_leader_acknowledges_nothing_that_the_survivors_do_not_have(outcome: Outcome) -> None:
    acknowledged = set(outcome.members["a"].acknowledged)
    assert acknowledged
    assert acknowledged <= set(outcome.members["b"].delivered)


def test_survivors_deliver_what_comes_with_a_returning_member_in_one_order(outcome: Outcome) -> None:
    one, other = outcome.members["b"].delivered, outcome.members["c"].delivered
    assert one[: len(other)] == other[: len(one)]
    assert sum(payload.startswith(b"a:") for payload in one) > 100


def test_a_survivor_that_sends_never_waits(outcome: Outcome) -> None:
    assert max(outcome.members[name].longest_send_s for name in "bc") < HEALING_S


def test_a_member_that_is_cut_off_delivers_nothing_alone_and_is_caught_up_when_it_is_back(outcome: Outcome) -> None:
    alone, others = outcome.members["a"].delivered, outcome.members["b"].delivered
    assert alone[: outcome.delivered_when_healed] == others[: outcome.delivered_when_healed]
    assert alone[: len(others)] == others[: len(alone)]
    assert len(alone) > outcome.delivered_when_healed


def test_a_member_that_comes_back_causes_no_second_outage(outcome: Outcome) -> None:
    for name in "bc":
        watched = outcome.members[name]
        assert watched.longest_pause_s(outcome.healed_at, outcome.ended_at) < HEALING_S
        assert watched.longest_pause_s(outcome.cut_at, outcome.healed_at) < TIMEOUT_S + 0.25
        # It is left out once, and let in once.
        assert [sorted(members) for members in watched.members_seen] == [["a", "b", "c"], ["b", "c"], ["a", "b", "c"]]


def test_what_is_sent_again_is_delivered_once(outcome: Outcome) -> None:
    for watched in outcome.members.values():
        assert len(set(watched.delivered)) == len(watched.delivered)
    for name, watched in outcome.members.items():
        assert [payload for payload in watched.delivered if payload.startswith(name.encode())] == watched.submitted
