"""Vectors stay small however long the group runs, because what is delivered everywhere is forgotten."""

from __future__ import annotations

from quire.protocols.objects.exchange import ObjectOptions
from tests.objects.kit import Execution, Plan


def sizes(roots: int, *, collect: bool) -> tuple[float, int, int]:
    """The mean and the largest size of the vectors of all messages, and the largest that is kept at the end."""
    options = ObjectOptions(heartbeat_ms=3, collect=collect, history=1 << 20)
    execution = Execution(5, Plan(roots=roots, span_ms=3.0 * roots, conflict=0.6, abort=0.0, depth=1, options=options))
    assert execution.play(600_000)
    carried = [len(head.past) for head in execution.heads().values()]
    kept = [size for executor in execution.executors for size in executor.node.vector_sizes()]
    return sum(carried) / len(carried), max(carried), max(kept)


def test_vectors_do_not_grow_with_the_run() -> None:
    mean, largest, kept = sizes(160, collect=True)
    assert mean < 4
    assert largest < 100
    assert kept < 20


def test_without_collection_they_do() -> None:
    short, long = sizes(8, collect=False), sizes(32, collect=False)
    assert long[0] > 2.5 * short[0]
    assert long[0] > 40
