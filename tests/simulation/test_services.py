"""A service in the simulator: found by its name, run to its end, its trace and its own figures written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from quire.model.errors import BadInput
from quire.model.orders import RELIABLE, Guarantee
from quire.protocols.node import Notice
from quire.simulation import simulate as simulation
from quire.simulation.config import Crash, FaultConfig, NetworkConfig, SimulationConfig
from quire.simulation.scenario import Scenario, Service
from quire.simulation.world import SimulatedHost, World
from quire.trace.log import Address
from quire.trace.store import read_info
from tests.simulation.test_world import QUESTIONS, Answered, Curious


class ConversationOptions(msgspec.Struct, frozen=True, kw_only=True):
    questions: int = QUESTIONS


class Conversation(Scenario):
    """Member 0 asks, and a process that is no member answers."""

    @classmethod
    def processes(cls, config: SimulationConfig, options: ConversationOptions) -> int:
        return config.members + 1

    def __init__(self, config: SimulationConfig, options: ConversationOptions, world: World) -> None:
        super().__init__(config, options, world)
        self.answers = 0
        world.add(Curious(0, options.questions), self.hear)
        world.add(Curious(1, 0), self.hear)

    def hear(self, host: SimulatedHost, notice: Notice) -> None:
        assert isinstance(notice, Answered)
        host.record_send(0, self.answers, Address("talk", (0,)), 0)
        host.record_delivery(0, self.answers, Address("talk"), 0)
        self.answers += 1
        self.origin_waits.append(1_000_000)

    def start(self) -> None:
        pass

    def done(self) -> bool:
        return self.world.idle()

    def sent(self) -> int:
        return self.answers

    def total(self) -> int:
        return int(self.options.questions)

    def complete(self) -> bool:
        return self.sent() == self.total()

    def promises(self) -> frozenset[Guarantee]:
        return RELIABLE

    def groups(self) -> Mapping[str, tuple[int, ...]]:
        return {"talk": (0,)}

    def details(self) -> dict[str, object]:
        return {"answers": self.answers}


@pytest.fixture(autouse=True)
def conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service("conversation", "questions and answers", Conversation, ConversationOptions)
    monkeypatch.setattr(simulation, "SERVICES", {service.name: service})


def config(**changes: object) -> SimulationConfig:
    network = NetworkConfig(delay="exponential:1", loss=0.4, duplicate=0.2, reorder=True)
    return msgspec.structs.replace(SimulationConfig(protocol="conversation", members=1, network=network), **changes)


def test_a_service_runs_to_its_end_and_says_what_only_it_can_say(tmp_path: Path) -> None:
    result = simulation.simulate(config(options={"questions": "7"}), tmp_path / "run")
    assert result.complete
    assert (result.messages, result.deliveries, result.details) == (7, 7, {"answers": 7})
    assert result.latency.origin is not None
    assert result.latency.origin.max == 1.0
    info = read_info(tmp_path / "run")
    assert info.groups == {"talk": (0,)}
    assert info.options == {"questions": 7}


def test_another_seed_is_another_run() -> None:
    assert simulation.simulate(config()).simulated_ms != simulation.simulate(config(seed=1)).simulated_ms


def test_what_a_service_cannot_do_is_refused_in_one_sentence() -> None:
    with pytest.raises(BadInput, match="has no option 'answers'"):
        simulation.simulate(config(options={"answers": 1}))
    with pytest.raises(BadInput, match="cannot be simulated with crashes"):
        simulation.simulate(config(faults=FaultConfig(crashes=(Crash(0, 1.0),))))
    with pytest.raises(BadInput, match=r"two-phase.*conversation"):
        simulation.simulate(config(protocol="nothing"))
