"""The sequencing service in the simulator: load, queues, moves, and what its trace says."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from quire.model.errors import BadInput
from quire.protocols.sequencing.ring import ring
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.runs import SimulationResult
from quire.simulation.simulate import simulate

BAD = NetworkConfig(delay="exponential:10", loss=0.3, duplicate=0.2, reorder=True)


def run(
    members: int, messages: int, out: Path | None = None, network: NetworkConfig | None = None, **options: Any
) -> SimulationResult:
    config = SimulationConfig(
        protocol="sequencer",
        members=members,
        options=options,
        network=network or NetworkConfig(),
        workload=WorkloadConfig(messages=messages, interval_ms=20),
    )
    return simulate(config, out)


@pytest.mark.parametrize("sequencers", [1, 2, 4])
def test_disjoint_groups_spread_the_load_evenly_over_the_sequencers(sequencers: int) -> None:
    result = run(8, 40, sequencers=sequencers, groups=4, overlap=0)
    assert result.complete
    load = result.details["load"]
    assert isinstance(load, dict)
    assert list(load.values()) == [8 * 40 // sequencers] * sequencers
    assert result.details["groups_moved"] == 0


def test_a_message_of_a_member_costs_one_request_and_one_multicast() -> None:
    result = run(4, 50, groups=2, overlap=0)
    assert (result.packets["DO-MULTICAST"], result.packets["ACCEPT"] - 4) == (200, 200)
    assert "ACK" not in result.packets


def test_a_message_of_a_stranger_costs_one_acknowledgement_more() -> None:
    result = run(3, 50, groups=1, overlap=0, strangers=1, sequencers=1)
    assert result.packets["ACK"] == 50


def test_groups_with_two_clients_in_common_come_to_one_sequencer() -> None:
    result = run(4, 20, groups=2, overlap=2, sequencers=2, balance_ticks=0)
    assert result.complete
    load = result.details["load"]
    assert isinstance(load, dict)
    assert sorted(load.values()) == [0, 80]
    assert result.details["groups_moved"] == 1
    assert isinstance(result.details["longest_queue"], int)
    assert result.details["longest_queue"] > 0


@pytest.mark.parametrize("order", ["total", "hybrid", "causal-total"])
@pytest.mark.parametrize("bodies", ["relay", "direct"])
def test_a_trace_says_who_was_to_deliver_each_message_and_every_change_of_membership(
    tmp_path: Path, order: str, bodies: str
) -> None:
    options = {"order": order, "bodies": bodies, "groups": 3, "overlap": 2, "sequencers": 3, "strangers": 1}
    result = run(6, 15, tmp_path / "run", BAD, **options, changes=5, moves=3)
    assert result.complete
    rows = [row for path in sorted((tmp_path / "run" / "trace").iterdir()) for row in pq.read_table(path).to_pylist()]
    delivered: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "deliver":
            delivered[row["origin"], row["seq"]].append(row["process"])
    sends = {(row["origin"], row["seq"]): row for row in rows if row["kind"] == "send"}
    assert len(sends) == 6 * 15
    for message, row in sends.items():
        assert sorted(delivered[message]) == row["dests"]
        assert row["group"] in ring(5, 3, 2)
    views = [row for row in rows if row["kind"] == "view"]
    assert {row["op"] for row in views} == {"join", "leave"}
    assert all((row["origin"] in row["dests"]) == (row["op"] == "join") for row in views)


def test_rings_overlap_as_asked() -> None:
    assert ring(3, 3, 1) == {"g0": (0, 1), "g1": (1, 2), "g2": (0, 2)}
    assert ring(4, 2, 0) == {"g0": (0, 1), "g1": (2, 3)}


def test_what_makes_no_sense_is_refused_in_one_sentence() -> None:
    with pytest.raises(BadInput, match="5 groups need"):
        run(4, 1, groups=5)
    with pytest.raises(BadInput, match="cannot share 3"):
        run(4, 1, groups=2, overlap=3)
    with pytest.raises(BadInput, match="acyclic needs an order"):
        run(4, 1, order="hybrid", acyclic=True)
    with pytest.raises(BadInput, match="choose total, hybrid or causal-total"):
        run(4, 1, order="causal")
