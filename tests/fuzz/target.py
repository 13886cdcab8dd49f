"""What is fuzzed: everything that reads bytes of a peer, and every protocol and every node of a service behind it.

The first byte of an input says who gets the rest. Only typed errors may come out, and a protocol or a node that refuses a
packet must be as it was before. Half of the packets are made of the input's bytes as they are; for the other half the input
only chooses fields, because random bytes are seldom a packet at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import NamedTuple

from quire.model.errors import QuireError
from tests.fuzz import readers
from tests.fuzz.nodes import node_seeds, talk_to_node
from tests.fuzz.protocols import protocol_seeds, talk_to_protocol
from tests.fuzz.services import CASTS
from tests.fuzz.source import Bytes
from tests.kit.variants import variants


class Target(NamedTuple):
    run: Callable[[Bytes], None]
    seeds: Callable[[], Iterator[bytes]]
    """Inputs that get far, for the fuzzer to start from."""


@cache
def targets() -> tuple[Target, ...]:
    return (
        Target(readers.read_stream, readers.stream_seeds),
        Target(readers.read_hello, readers.hello_seeds),
        Target(readers.read_answer, readers.answer_seeds),
        Target(readers.read_introduction, readers.introduction_seeds),
        *(Target(partial(talk_to_protocol, variant=each), partial(protocol_seeds, each)) for each in variants()),
        *(Target(partial(talk_to_node, cast=each), partial(node_seeds, each)) for each in CASTS),
    )


def fuzz(data: bytes) -> None:
    """Run one input. Raises whatever should not have come out."""
    source = Bytes(data)
    target = targets()[source.byte() % len(targets())]
    with suppress(QuireError):
        target.run(source)


def seeds() -> Iterator[bytes]:
    for choice, target in enumerate(targets()):
        for seed in target.seeds():
            yield bytes([choice]) + seed
