"""Nodes on a bad network: timers ring, lost packets are repeated, everything replays from its seed."""

from __future__ import annotations

from quire.model.packets import Packet
from quire.protocols.node import NOTHING, Effects, Node, Notice, Send
from quire.simulation.delays import parse_delays
from quire.simulation.network import Network
from quire.simulation.randomness import stream
from quire.simulation.world import SimulatedHost, World
from quire.trace.log import Address

REPEAT_NS = 10_000_000
QUESTIONS = 20


class Question(Packet, frozen=True, tag="question"):
    name = "QUESTION"
    number: int


class Answer(Packet, frozen=True, tag="answer"):
    name = "ANSWER"
    number: int


class Answered(Notice, frozen=True):
    number: int


class Curious(Node):
    """Asks one question after the other, each until it is answered; answers whatever it is asked."""

    packets = (Question, Answer)

    def __init__(self, address: int, questions: int) -> None:
        super().__init__(address)
        self.left = questions
        self.again = 0 if questions else None

    def receive(self, now: int, source: int, packet: Packet) -> Effects:
        if isinstance(packet, Question):
            return (Send(Answer(packet.number), (source,)),)
        assert isinstance(packet, Answer)
        if packet.number != self.left:
            return NOTHING
        self.left -= 1
        self.again = now if self.left else None
        return (Answered(packet.number),)

    def wake(self, now: int) -> Effects:
        self.again = now + REPEAT_NS
        return (Send(Question(self.left), (1,)),)

    def due(self) -> int | None:
        return self.again

    def idle(self) -> bool:
        return not self.left


def play(seed: int, loss: float) -> tuple[list[int], int, bytes]:
    network = Network(2, parse_delays("exponential:1", 2), stream(seed, "network"), loss=loss, duplicate=0.2, reorder=True)
    world, told = World(network), list[int]()

    def hear(host: SimulatedHost, notice: Notice) -> None:
        assert isinstance(notice, Answered)
        told.append(notice.number)
        host.record_delivery(0, QUESTIONS - notice.number, Address("talk", (0,)), 0)

    world.add(Curious(0, QUESTIONS), hear)
    world.add(Curious(1, 0), hear)
    assert world.run(60_000_000_000, world.idle)
    return told, world.now, world.hosts[0].log.take()


def test_every_question_is_answered_once_whatever_the_network_does() -> None:
    for seed in range(50):
        assert play(seed, 0.4)[0] == list(range(QUESTIONS, 0, -1))


def test_another_seed_is_another_run() -> None:
    assert play(7, 0.4) != play(8, 0.4)


def test_a_node_that_crashed_answers_no_more() -> None:
    network = Network(2, parse_delays("constant:1", 2), stream(0, "network"))
    world = World(network)
    world.add(Curious(0, 1), lambda _place, _notice: None)
    world.add(Curious(1, 0), lambda _place, _notice: None)
    world.crash(1)
    assert not world.run(1_000_000_000, world.idle)
