"""When senders submit."""

from __future__ import annotations

from itertools import islice

import pytest

from quire.simulation.config import NetworkConfig, SimulationConfig, WorkloadConfig
from quire.simulation.network import Network
from quire.simulation.randomness import stream
from quire.simulation.simulate import simulate
from quire.simulation.workload import due_times, payload

MS = 1_000_000


def times(count: int, index: int = 0, **workload: object) -> list[int]:
    config = SimulationConfig(members=4, workload=WorkloadConfig(**workload))  # type: ignore[arg-type]
    return list(islice(due_times(config, index, stream(1, "workload/0")), count))


def test_even_spacing_staggers_the_senders_over_one_interval() -> None:
    assert times(3, interval_ms=40) == [0, 40 * MS, 80 * MS]
    assert times(2, index=3, interval_ms=40) == [30 * MS, 70 * MS]


def test_poisson_spacing_has_the_interval_as_its_mean() -> None:
    drawn = times(5000, spacing="poisson", interval_ms=40)
    assert drawn == sorted(drawn)
    assert drawn[-1] / 5000 == pytest.approx(40 * MS, rel=0.05)


def test_a_burst_comes_at_once_and_keeps_the_mean_rate() -> None:
    assert times(6, burst=3, interval_ms=10) == [0, 0, 0, 30 * MS, 30 * MS, 30 * MS]


def test_payloads_have_the_size_asked_for() -> None:
    assert [len(payload(size)) for size in (0, 1, 256, 1000)] == [0, 1, 256, 1000]


def run(**workload: object) -> tuple[int, int, dict[str, int], float]:
    result = simulate(SimulationConfig(members=3, workload=WorkloadConfig(**workload)))  # type: ignore[arg-type]
    assert result.complete
    return result.messages, result.deliveries, result.packets, result.simulated_ms


def test_every_sender_sends_its_messages_in_batches_the_last_of_which_may_be_smaller() -> None:
    messages, deliveries, packets, _ = run(messages=10, batch=4, senders=(0, 2), size=0)
    assert (messages, deliveries, packets["GOP"]) == (20, 60, 6)


def test_a_blocking_sender_waits_for_its_own_delivery() -> None:
    # Alone, member 2 waits two delays for each operation; pipelined it does not wait for them to submit.
    *_, blocking_ms = run(messages=10, senders=(2,), interval_ms=1, mode="blocking")
    *_, pipelined_ms = run(messages=10, senders=(2,), interval_ms=1)
    assert blocking_ms == pytest.approx(10 * 20 + 10, abs=20)
    assert pipelined_ms < 60


def test_another_workload_does_not_change_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    arrivals = Network.arrivals

    def delays(**workload: object) -> list[int]:
        """How long each copy took, in the order sent."""
        found: list[int] = []

        def watched(self: Network, source: int, destination: int, now_ns: int) -> list[int]:
            times = arrivals(self, source, destination, now_ns)
            found.extend(time - now_ns for time in times)
            return times

        monkeypatch.setattr(Network, "arrivals", watched)
        network = NetworkConfig(delay="exponential:10", loss=0.1, reorder=True)
        simulate(SimulationConfig(members=3, network=network, workload=WorkloadConfig(messages=5, **workload)))  # type: ignore[arg-type]
        return found

    even, poisson = delays(), delays(spacing="poisson", size=3)
    assert len(set(even)) > 20
    assert all(one == other for one, other in zip(even, poisson, strict=False))
