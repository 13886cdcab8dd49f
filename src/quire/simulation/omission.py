"""Simulates the paper's evaluation of omission: what share of requests must be executed, by share of writes and processors.

Each processor is a replica and a client that issues one operation after the other, as soon as all destinations have answered
the last. Requests wait in the queue of each replica until they are stable there, and take no time to execute. The queue and the
omission rule are those of stores; whether an operation would be obsolete is not checked.

The result varies by several hundredths with the relative phase of the processors' heartbeats, which depends on the seed: take
the mean of several seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count as counter
from typing import Any

import msgspec

from quire.protocols.transactions.channels import Clock
from quire.protocols.transactions.omission import Counts, insignificant
from quire.protocols.transactions.packets import Read, Request, Write
from quire.protocols.transactions.queue import ReceiptQueue
from quire.protocols.transactions.timestamps import Timestamp, Version
from quire.simulation.delays import parse_delays
from quire.simulation.network import Network
from quire.simulation.randomness import stream


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The paper's setting; a thousand milliseconds are its unit of time, the mean delay."""

    processors: int = 10
    write_share: float = 0.9
    keys: int = 3
    transactions: int = 20
    """Of each processor."""
    operations: int = 10
    beat_ms: float = 200.0
    delay: str = "uniform:800:1200"
    seed: int = 0


def evaluate(evaluation: Evaluation) -> Counts:
    """What came to all replicas, and how much of it was carried out."""
    return _Closed(evaluation).run()


class _Processor:
    def __init__(self, number: int, processors: int, operations: int) -> None:
        self.clock = Clock()
        self.queue = ReceiptQueue(number, range(processors))
        self.left = operations
        self.missing = 0
        """Answers to its present operation that have not come."""


class _Closed:
    """The closed loop: a heap of arrivals and heartbeats."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        size = evaluation.processors
        self.random = stream(evaluation.seed, "evaluation")
        self.network = Network(size, parse_delays(evaluation.delay, size), stream(evaluation.seed, "network"))
        operations = evaluation.transactions * evaluation.operations
        self.processors = [_Processor(number, size, operations) for number in range(size)]
        self.busy = size
        self.counts = Counts()
        self.beat_ns = int(evaluation.beat_ms * 1_000_000)
        self.now = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = counter().__next__

    def run(self) -> Counts:
        for number in range(len(self.processors)):
            self._at(int(self.random.random() * self.beat_ns), self._beat, number)
            self._at(int(self.random.random() * self.beat_ns / 20), self._operate, number)
        while self.busy:
            self.now, _, act, arguments = heappop(self._heap)
            act(*arguments)
        return self.counts

    def _at(self, time: int, act: Callable[..., None], *arguments: Any) -> None:
        heappush(self._heap, (time, self._number(), act, arguments))

    def _send(self, source: int, to: int, request: Request | None = None, *, answer: bool = False) -> None:
        lc = self.processors[source].clock.lc
        time = self.now if source == to else self.network.arrivals(source, to, self.now)[0]
        self._at(time, self._arrive, source, to, lc, request, answer)

    def _tell_all(self, number: int) -> None:
        self.processors[number].clock.tick()
        for to in range(len(self.processors)):
            if to != number:
                self._send(number, to)

    def _beat(self, number: int) -> None:
        self._tell_all(number)
        self._at(self.now + self.beat_ns, self._beat, number)

    def _operate(self, number: int) -> None:
        processor, evaluation, random = self.processors[number], self.evaluation, self.random
        if not processor.left:
            self.busy -= 1
            return
        processor.left -= 1
        lc, t, key = processor.clock.tick(), Timestamp(processor.left + 1, number), str(random.randrange(evaluation.keys))
        request: Request = Write(0, 0, lc, t, 0, key, Version(*t, 1), None)
        replicas = range(evaluation.processors)
        if random.random() >= evaluation.write_share:
            one = random.randrange(evaluation.processors)
            request, replicas = Read(0, 0, lc, t, 0, key), range(one, one + 1)
        processor.missing = len(replicas)
        for replica in replicas:
            self._send(number, replica, request)

    def _arrive(self, source: int, to: int, lc: int, request: Request | None, answer: bool) -> None:
        processor = self.processors[to]
        processor.clock.heard(lc)
        processor.queue.heard(source, lc)
        if request is not None:
            processor.queue.put(source, request)
        if answer:
            processor.missing -= 1
            if not processor.missing:
                self._operate(to)
        self._deliver(to)

    def _deliver(self, number: int) -> None:
        processor = self.processors[number]
        stable = processor.queue.take()
        if not stable:
            return
        self.counts.transmitted += len(stable)
        self.counts.delivered += len(stable) - len(insignificant(stable, processor.queue))
        self.counts.batches += 1
        for queued in stable:
            processor.clock.tick()
            self._send(number, queued.source, answer=True)
