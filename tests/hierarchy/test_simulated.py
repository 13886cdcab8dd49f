"""Hierarchies in the simulator: whom messages go to, what the trace says of it, and what the result counts."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from benchmarks.hierarchy import CONTENDERS, measure

from quire.model.errors import BadInput
from quire.protocols.clusters.errors import UnknownDestination
from quire.protocols.clusters.site import Site
from quire.protocols.hierarchy.costs import header_entries
from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.group import Group
from quire.simulation.simulate import SimulationResult, _GroupRun, simulate
from quire.trace.rows import spread
from quire.trace.store import open_run
from quire.trace.tables import as_records
from tests.hierarchy.trees import GOLDEN

OPTIONS: tuple[str, ...] = ("inside", "encoding", "branching", "held")
NETWORK: tuple[str, ...] = ("delay", "reorder", "duplicate")


def simulated(
    members: int = 16, out: Path | None = None, protocol: str = "hierarchy", seed: int = 0, **settings: object
) -> SimulationResult:
    options = {name: settings.pop(name) for name in OPTIONS if name in settings}
    network = {name: settings.pop(name) for name in NETWORK if name in settings}
    config = SimulationConfig(
        protocol=protocol, members=members, seed=seed, options=options,
        network=NetworkConfig(**network), workload=WorkloadConfig(**settings),  # type: ignore[arg-type]
    )  # fmt: skip
    return simulate(config, out)


def rows_of(directory: Path) -> list[dict[str, object]]:
    return [row for path in sorted((directory / "trace").iterdir()) for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("protocol", ["hierarchy", "matrix", "coordinator"])
def test_the_trace_says_of_each_message_exactly_who_must_deliver_it(protocol: str, tmp_path: Path) -> None:
    simulated(6, tmp_path / "run", protocol, messages=40, broadcast=0.2, multicast=0.3)
    rows = rows_of(tmp_path / "run")
    sends = {(row["origin"], row["seq"]): row for row in rows if row["kind"] == "send"}
    delivered: dict[object, set[object]] = {message: set() for message in sends}
    for row in rows:
        if row["kind"] == "deliver":
            assert row["group"] is None
            delivered[row["origin"], row["seq"]].add(row["process"])
    sizes = set()
    for message, row in sends.items():
        assert set(row["dests"]) == delivered[message]  # type: ignore[call-overload]
        assert row["group"] == ("all" if len(row["dests"]) == 6 and row["group"] else None)  # type: ignore[arg-type]
        sizes.add((row["group"], len(row["dests"])))  # type: ignore[arg-type]
    assert {("all", 6), (None, 1), (None, 2)} <= sizes


def test_a_group_whose_protocol_cannot_address_some_members_is_told_so() -> None:
    for name, share in (("broadcast", 0.5), ("multicast", 0.3)):
        with pytest.raises(BadInput, match="whole group only"):
            simulate(SimulationConfig(workload=WorkloadConfig(**{name: share})))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="fractions of all submissions"):
        simulated(3, broadcast=0.9, multicast=0.2)


def test_a_blocking_sender_waits_for_what_comes_back_to_it_and_for_nothing_else() -> None:
    result = simulated(6, inside="coordinator", mode="blocking", messages=30)
    assert result.complete
    assert result.messages == 180


def test_a_site_to_which_nothing_happens_has_no_file(tmp_path: Path) -> None:
    simulated(8, tmp_path / "run", senders=(0,), messages=1)
    assert 1 <= len(open_run(tmp_path / "run").files) < 8


@pytest.mark.parametrize("inside", ["matrix", "coordinator", "mixed"])
@pytest.mark.parametrize("reorder", [False, True])
def test_buffers_with_room_for_one_message_hold_up_nothing_for_ever(inside: str, reorder: bool) -> None:
    for seed in range(5):
        result = simulated(
            12, seed=seed, inside=inside, branching=2, held=1, messages=10, interval_ms=5.0, broadcast=0.1,
            delay="exponential:30", reorder=reorder, duplicate=0.1,
        )  # fmt: skip
        assert result.complete, f"seed {seed}"


def delivered_between_clients(seed: int) -> int:
    """How many of a hundred messages arrive that pass agents with little room, to whom nothing is sent."""
    group = Group("hierarchy", 12, {"branching": 2, "held": 1}, delay="exponential:30", seed=seed, reorder=True)
    clients = [me for me, site in enumerate(group._engine.sites) if site.protocol.role() == "client"]
    random = Random(seed)
    for _ in range(100):
        group.send(random.choice(clients), b"x", to=(random.choice(clients),))
        group.advance(1)
    group.settle()
    return sum(len(group.delivered(me)) for me in range(12))


def test_a_relay_takes_refused_packets_though_nothing_is_ever_delivered_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(delivered_between_clients(seed) == 100 for seed in range(10))
    monkeypatch.setattr(Site, "wakes_on_packets", False)
    assert any(delivered_between_clients(seed) < 100 for seed in range(10)), "it is the packets that wake it"


def test_nothing_is_remembered_of_runs_that_were_passed_on_or_came_twice() -> None:
    config = SimulationConfig(
        protocol="hierarchy", members=16, network=NetworkConfig(delay="uniform:1:40", reorder=True, duplicate=0.3)
    )
    run = _GroupRun(config)
    run.go(None, None)
    assert run.outcome().complete
    assert not any(site.receipts or site.parts or site.stalled for site in run.engine.sites)


def test_entries_of_the_worst_message_are_those_of_the_formula() -> None:
    """Member 15 is a client in another part than member 1, and a message to it crosses the top."""
    group = Group("hierarchy", members=16, options={"encoding": "dense"})
    group.send(1, b"x", to=(15,))
    group.settle()
    tally = group._engine.tally
    assert tally is not None
    assert tally.entries == header_entries(16, 4, 5) == 48
    assert sum(tally.arrivals) == 3


def test_arrivals_at_every_site_are_those_of_the_specification() -> None:
    result = simulated(16, inside="coordinator", messages=1250, multicast=0.0, interval_ms=1.0)
    assert result.arrivals is not None
    for site, share in GOLDEN["physical_16_4"]["net_arrivals"].items():
        assert result.arrivals.per_site[int(site)] / result.messages == pytest.approx(share, abs=0.02)
    assert result.arrivals.per_role["client"].mean / result.messages == pytest.approx(1 / 16, rel=0.02)
    assert result.arrivals.per_role["top coordinator"].max == max(result.arrivals.per_site)


def test_header_entries_grow_by_the_same_with_each_factor_of_the_branching() -> None:
    """With random destinations, less than for the worst message: most routes are shorter at one end."""
    means = []
    for power in (2, 3, 4):
        result = simulated(4**power, messages=2048 // 4**power, multicast=0.0, encoding="dense")
        assert result.header_entries_per_message is not None
        assert result.header_entries_per_message <= header_entries(4**power, 4, 5)
        means.append(result.header_entries_per_message)
    assert 0 < means[1] - means[0] <= 32
    assert means[2] - means[1] == pytest.approx(means[1] - means[0], rel=0.25)


def test_header_bytes_on_the_wire_grow_like_the_logarithm_and_those_of_flat_groups_like_squares() -> None:
    def header(contender: str, n: int) -> float:
        return float(measure(*CONTENDERS[contender], n, 512, 1)["header_bytes"])

    for contender in ("hierarchy, dense", "hierarchy, adaptive", "hierarchy, coordinators"):
        small, middle, large = (header(contender, n) for n in (16, 64, 256))
        assert large - middle == pytest.approx(middle - small, rel=0.35), "a step for each factor of four"
    flat = [header("flat matrix, dense", n) for n in (16, 64)]
    assert flat[1] / flat[0] == pytest.approx(16, rel=0.05)


@pytest.mark.parametrize("inside", ["matrix", "coordinator"])
def test_four_thousand_sites_are_simulated_message_by_message(inside: str) -> None:
    result = simulated(4096, inside=inside, branching=8, senders=tuple(range(0, 4096, 16)), messages=2)
    assert result.complete
    assert result.messages == 512
    assert result.arrivals is not None
    assert len(result.arrivals.per_site) == 4096


def addressed(group: Group, member: int) -> list[tuple[int, ...]]:
    """Who must deliver what the member sent, by its records."""
    log = group._engine.sites[member].log
    rows = spread("run", member, 0, log.names, as_records(log.take())).to_pylist()
    return [tuple(row["dests"]) for row in rows if row["kind"] == "send"]


def test_a_group_changes_while_messages_are_under_way() -> None:
    """Four sites in two parts, and a member outside who joins, speaks and leaves again."""
    text = "[[layers]]\nclusters = [[0, 1], [2, 3]]\nagents = [0, 2]\n[[layers]]\nclusters = [[0, 2]]\n"
    group = Group("hierarchy", members=5, options={"description": text}, delay="uniform:1:30")
    group._engine.between = None  # It would forget the records.
    with pytest.raises(UnknownDestination, match="no site 4"):
        group.send(0, b"too early", to=(4,))
    group.change(4, lambda site: site.join(2))
    group.submit(0, b"to the founders")
    group.settle()
    group.send(1, b"to the newcomer", to=(4,))
    group.change(4, lambda site: site.move(0))
    waits = group.submit(4, b"from the newcomer")
    assert waits.message is None, "it is on its way to another cluster"
    group.settle()
    assert [message.payload for message in group.delivered(4)] == [b"to the newcomer", b"from the newcomer"]
    assert [message.payload for message in group.delivered(0)] == [b"to the founders", b"from the newcomer"]
    assert addressed(group, 0) == [(0, 1, 2, 3)]
    assert addressed(group, 1) == [(4,)]
    assert addressed(group, 4) == [(0, 1, 2, 3, 4)]
    group.change(4, lambda site: site.leave())
    group.settle()
    with pytest.raises(UnknownDestination):
        group.send(0, b"too late", to=(4,))
