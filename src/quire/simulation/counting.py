"""Computes the cost of a hierarchy by following message routes only, without packets or clocks, for up to a million sites.

Messages have random sources and destinations. The generated hierarchy is so regular that a site's clusters and agents on every
layer follow from its number, so a batch of messages is followed with a few array operations per layer. It counts hops, matrix
entries and header bytes of each message, arrivals at each site, and for coordinators the arrivals in each role. A site that is
an agent on several layers has a role on each; its own arrivals are those over the network, which excludes its messages to
itself in another role.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from quire.model.errors import BadInput
from quire.model.messages import Run
from quire.model.packets import header_bytes
from quire.protocols.clusters.encoding import DENSE
from quire.protocols.clusters.packets import Down, Tagged, Up
from quire.protocols.hierarchy.description import layer_count, split

SITES_MAX = 1_000_000
_BATCH = 1 << 18

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Counted(msgspec.Struct, frozen=True):
    """Means and maxima over all messages. Loads are shares of all messages, for the mean coordinator of each layer."""

    sites: int
    layers: int
    messages: int
    inside: str
    hops_mean: float
    hops_max: int
    entries_mean: float
    """The matrix entries of a message over all hops; 0 with coordinators."""
    entries_max: int
    bytes_mean: float
    """The header bytes of a message over all packets, as long as no counter exceeds 127."""
    bytes_max: int
    from_below: tuple[float, ...]
    """Per layer, a coordinator's arrivals from the sites it serves."""
    from_above: tuple[float, ...]
    """Per layer, a coordinator's arrivals from the layer above."""
    hottest: float
    """The share of all messages that arrive over the network at the busiest site."""
    arrivals: Integers
    """Per site, how many packets arrive over the network."""


class Shape:
    """The hierarchy that `build` generates, as arithmetic on the numbers of sites."""

    def __init__(self, n: int, b: int, d: int) -> None:
        if not 1 <= n <= SITES_MAX:
            raise BadInput(f"routes can be counted for 1 to {SITES_MAX} sites, not {n}")
        self.sites = n
        self.branching = b
        self.layers = layer_count(n, b, d)
        parts = [n]
        for _ in range(self.layers - 1):
            parts = [size for part in parts for size in split(part, b)]
        self.sizes = np.array(parts, dtype=np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes

    def leaf(self, site: Integers) -> Integers:
        """The number of each site's cluster on layer 1."""
        return np.searchsorted(self.starts, site, side="right") - 1

    def agent(self, leaf: Integers, layer: int) -> Integers:
        """The agent of the cluster on this layer in which the cluster on layer 1 is: the first site of its first."""
        width = self.branching ** (layer - 1)
        first: Integers = self.starts[leaf // width * width]
        return first

    def cluster_size(self, leaf: Integers, layer: int) -> Integers:
        return self.sizes[leaf] if layer == 1 else np.full_like(leaf, self.branching if self.layers > 1 else self.sites)


class _Counter:
    def __init__(self, shape: Shape, inside: str) -> None:
        self.shape = shape
        self.coordinated = inside == "coordinator"
        self.arrivals: Integers = np.zeros(shape.sites, dtype=np.int64)
        self.below = [0] * shape.layers
        self.above = [0] * shape.layers
        self.hops: list[Integers] = []
        self.entries: list[Integers] = []
        self.bytes: list[Integers] = []
        sizes = {*map(int, np.unique(shape.sizes)), shape.branching if shape.layers > 1 else shape.sites}
        self._packet_bytes: Integers = np.zeros(max(sizes) + 1, dtype=np.int64)
        for size in sizes:
            self._packet_bytes[size] = _tagged_bytes(shape, size)
        self._up_bytes, self._down_bytes = _numbered_bytes(shape)

    def follow(self, source: Integers, dest: Integers) -> None:
        """Follow one message for each pair."""
        shape = self.shape
        ours, theirs = shape.leaf(source), shape.leaf(dest)
        at, to = source.copy(), dest.copy()
        on_the_way: Flags = np.ones(len(source), dtype=bool)
        self._new = [np.zeros(len(source), dtype=np.int64) for _ in range(3)]
        for layer in range(1, shape.layers + 1):
            width = shape.branching ** (layer - 1)
            meets = on_the_way & (ours // width == theirs // width)
            self.below[layer - 1] += int(on_the_way.sum())
            top = layer == shape.layers
            self._hop(meets, at, to, ours, layer)
            on_the_way &= ~meets
            if top:
                break
            self.above[layer - 1] += int(on_the_way.sum())
            agent, other = shape.agent(ours, layer), shape.agent(theirs, layer)
            self._hop(on_the_way & (at != agent), at, agent, ours, layer)
            self._hop(on_the_way & (to != other), other, to, theirs, layer)
            at, to = agent, other
        for total, new in zip((self.hops, self.entries, self.bytes), self._new, strict=True):
            total.append(new)

    def _hop(self, taken: Flags, source: Integers, dest: Integers, leaf: Integers, layer: int) -> None:
        """Those messages go from member to member of a cluster on this layer."""
        hops, entries, octets = self._new
        hops += taken
        if not self.coordinated:
            size = self.shape.cluster_size(leaf, layer)
            moves = taken & (source != dest)
            entries += np.where(moves, size * size, 0)
            octets += np.where(moves, self._packet_bytes[size], 0)
            self._arrive(dest[moves])
            return
        # At the top the first member coordinates, which is the first site of all.
        coordinator = self.shape.agent(leaf, layer)
        up, down = taken & (source != coordinator), taken & (dest != coordinator)
        octets += np.where(up, self._up_bytes, 0) + np.where(down, self._down_bytes, 0)
        self._arrive(coordinator[up])
        self._arrive(dest[down])

    def _arrive(self, sites: Integers) -> None:
        self.arrivals += np.bincount(sites, minlength=self.shape.sites)


def _tagged_bytes(shape: Shape, size: int) -> int:
    run = Run(shape.sites - 1, 0, 1)
    return header_bytes(Tagged(len(shape.sizes), 0, 0, shape.sites - 1, (shape.sites - 1,), run, b"", DENSE, (1,) * size**2))


def _numbered_bytes(shape: Shape) -> tuple[int, int]:
    run, cluster, site = Run(shape.sites - 1, 0, 1), len(shape.sizes), shape.sites - 1
    up = Up(cluster, 0, 0, site, (site,), run, b"", 1)
    return header_bytes(up), header_bytes(Down(cluster, 0, 0, site, (site,), run, b"", 1, 1))


def count_routes(
    n: int,
    b: int,
    d: int | None = None,
    *,
    messages: int = 100_000,
    seed: int = 0,
    inside: Literal["matrix", "coordinator"] = "matrix",
) -> Counted:
    """Follow this many messages between uniformly random sites (a message may be to its own sender); raises BadInput if there
    is no such hierarchy or number of messages."""
    if messages < 1:
        raise BadInput(f"at least one message must be followed, not {messages}")
    shape = Shape(n, b, b + 1 if d is None else d)
    counter = _Counter(shape, inside)
    generator = np.random.default_rng(seed)
    for start in range(0, messages, _BATCH):
        ends = generator.integers(0, n, size=(2, min(_BATCH, messages - start)))
        counter.follow(ends[0], ends[1])
    hops, entries, octets = (np.concatenate(parts) for parts in (counter.hops, counter.entries, counter.bytes))
    clusters = [b ** (shape.layers - layer) for layer in range(1, shape.layers + 1)]
    return Counted(
        sites=n,
        layers=shape.layers,
        messages=messages,
        inside=inside,
        hops_mean=float(hops.mean()),
        hops_max=int(hops.max()),
        entries_mean=float(entries.mean()),
        entries_max=int(entries.max()),
        bytes_mean=float(octets.mean()),
        bytes_max=int(octets.max()),
        from_below=tuple(total / messages / count for total, count in zip(counter.below, clusters, strict=True)),
        from_above=tuple(total / messages / count for total, count in zip(counter.above, clusters, strict=True)),
        hottest=float(counter.arrivals.max()) / messages,
        arrivals=counter.arrivals,
    )
