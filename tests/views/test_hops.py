"""How many hops it takes until a message is delivered, and what is sent for it: against the specification's figures.

Every packet takes one hop. Of the figures, those are compared that do not depend on when random senders send: of one sender,
with a message every eight hops; and of reads where nothing else happens.
"""

from __future__ import annotations

import json
from collections import Counter
from heapq import heappop, heappush
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from quire.views.effects import Deliver, Effect, ProcessEffect, ReadReady
from quire.views.packets import AskHeld, Control, Data, GroupPacket, Have, Held
from tests.views.stage import Stage

GOLDEN = Path(__file__).parents[1] / "golden"
MESSAGES = 60
NEAR = 0.07
"""The specification leaves some of the first and last messages out of its means. What is sent is counted in full there, too."""


def rows(file: str) -> list[dict[str, Any]]:
    return json.loads((GOLDEN / f"{file}.json").read_text())  # type: ignore[no-any-return]


LONE = [
    row
    for row in rows("v2_hops")
    # Whoever holds a message says so as here, or need not.
    if isinstance(row["senders"], str) and row["have"] == ("witness" if row["uniform"] else "none")
]
IDLE = [row for row in rows("v2_read_hops") if row["gap"] is None]


class Timed(Stage):
    """Everything that is sent arrives one hop later."""

    def __init__(self, members: int, lookahead: int, *, uniform: bool) -> None:
        super().__init__(members, uniform=uniform, run_max=1, options={"lookahead": lookahead})
        self.now = 0.0
        self.took: dict[str, list[float]] = {}
        """How long after they were submitted messages were delivered, or reads answered, at each member."""
        self.sent: Counter[type] = Counter()
        self._arrivals: list[tuple[float, int, str, str]] = []
        self.found()
        self.sent.clear()
        self._arrivals.clear()
        self._began = 0.0

    def begin(self) -> None:
        self._began = self.now

    def run_until(self, time: float) -> None:
        while self._arrivals and self._arrivals[0][0] <= time:
            self.now, _, source, to = heappop(self._arrivals)
            self.arrive((source, 1, to, 1))
        self.now = time

    def _put(self, name: str, to: str, addressee: int, packet: GroupPacket) -> None:
        super()._put(name, to, addressee, packet)
        self.sent[type(packet)] += 1
        heappush(self._arrivals, (self.now + 1, self.sent.total(), name, to))

    def _perform(self, name: str, effect: Effect | ProcessEffect) -> None:
        super()._perform(name, effect)
        if isinstance(effect, Deliver | ReadReady):
            self.took.setdefault(name, []).append(self.now - self._began)


def row_name(row: dict[str, Any]) -> str:
    return " ".join(f"{key}={row[key]}" for key in ("n", "uniform", "senders", "L") if key in row)


@pytest.mark.parametrize("row", LONE, ids=row_name)
def test_what_one_sender_sends_is_delivered_in_as_many_hops_as_specified(row: dict[str, Any]) -> None:
    group = Timed(row["n"], row["L"], uniform=row["uniform"])
    origin = f"m{row['senders'].removeprefix('rank ')}"
    for number in range(MESSAGES):
        group.run_until(row["gap"] * number)
        group.begin()
        group.submit(origin)
    group.run_until(row["gap"] * MESSAGES)
    others = [hops for name, took in group.took.items() if name != origin for hops in took]
    assert len(others) == MESSAGES * (row["n"] - 1)
    assert [mean(group.took[origin]), mean(others)] == pytest.approx([row["origin"], row["others"]], abs=NEAR)
    assert max(*group.took[origin], *others) <= max(row["origin_max"], row["others_max"])
    figures = [group.sent[kind] / MESSAGES for kind in (Data, Control, Have)]
    assert figures == pytest.approx([row["data"], row["ack"], row["have_pk"]], abs=0.01)


@pytest.mark.parametrize("row", IDLE, ids=row_name)
def test_a_read_takes_two_hops_where_nothing_else_happens(row: dict[str, Any]) -> None:
    group = Timed(row["n"], row["L"], uniform=True)
    for number in range(MESSAGES):
        group.run_until(8.0 * number)
        group.begin()
        group.read("m1", number)
    group.run_until(8.0 * MESSAGES)
    assert group.took == {"m1": [row["mean"]] * MESSAGES}
    assert (group.sent[AskHeld] + group.sent[Held]) / MESSAGES == row["packets"]
