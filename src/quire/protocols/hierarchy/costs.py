"""Exact costs of a hierarchy of equal clusters: header entries of a message, and loads of coordinators.

Everything is in whole numbers or fractions. `n` sites are divided by `b` into `l` layers, the last clusters having s sites.

Source: L.-H. Yen, K.-H. Chi and T.-L. Huang, "A Scalable Scheme for Causal Message Ordering", section IV.
Departures, by the names of docs/papers.md: the paper's loads hold for two layers only. A message that comes to a
coordinator of layer k >= 3 has left the cluster below already, so the chance that it goes on is a conditional one, and what
turns round below the top never comes down from it; `from_below` and `from_above` say what is right for any number of layers
(Y2, Y3). The header cost is given exactly, where the paper gives its growth; with unequal clusters it is an upper bound
(Y8). The number of layers is counted in whole numbers and is at least one (Y4). All loads are those of a role; one site may
have several (Y7).
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

from quire.protocols.hierarchy.description import layer_count

CROSSING = (3 + sqrt(5)) / 2
"""The branching at which, with two layers, the top coordinator has the same load as those below: 2.618."""


def header_entries(n: int, b: int, d: int) -> int:
    """The matrix entries that the most expensive message carries over all of its hops, from one client across the top to
    another."""
    layers = layer_count(n, b, d)
    if layers == 1:
        return n * n
    size: int = -(-n // b ** (layers - 1))
    return 2 * size * size + (2 * layers - 3) * b * b


def hops_max(layers: int) -> int:
    """The largest number of hops that a message takes."""
    return 2 * layers - 1


def from_below(b: int, layers: int, layer: int) -> Fraction:
    """The messages that a coordinator receives from the members of its cluster, as a share of all messages in the system.

    Every site sends equally often, to each site with the same probability, itself included; R(n, k) in the paper.
    """
    if layer == 1:
        return Fraction(1, b ** (layers - 1))
    return Fraction(1, b ** (layers - layer)) * (1 - Fraction(1, b ** (layers - layer + 1)))


def from_above(b: int, layers: int, layer: int) -> Fraction:
    """The messages that a coordinator receives from the layer above, as a share of all; S(n, k) in the paper. None at the
    top."""
    share = Fraction(1, b ** (layers - layer))
    return share * (1 - share)


def top_load(b: int, layers: int) -> Fraction:
    """The messages that the top coordinator receives, as a share of all; L(n) in the paper."""
    return from_below(b, layers, layers)
