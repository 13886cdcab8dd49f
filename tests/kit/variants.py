"""Every protocol of the registry in every variant that the common suites run it in."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

from quire.model.orders import Guarantee, implied_by
from quire.protocols.contract import Links, Protocol
from quire.protocols.registry import PROTOCOLS, create, read_options
from tests.kit.world import Factory


class Variant(NamedTuple):
    """A protocol with options. Its text names it in test ids."""

    protocol: str
    options: Mapping[str, object]

    def __str__(self) -> str:
        return " ".join([self.protocol, *(f"{name}={value}" for name, value in self.options.items())])

    @property
    def kind(self) -> type[Protocol]:
        return PROTOCOLS[self.protocol].protocol

    @property
    def promises(self) -> frozenset[Guarantee]:
        return implied_by(self.kind.promises)

    @property
    def reordering(self) -> bool:
        """Whether the links may do their worst: reorder and repeat."""
        return self.kind.links == Links.RELIABLE

    def factory(self, **more: object) -> Factory:
        """Makes the members of a world; `more` are further options."""
        options = read_options(self.protocol, {**self.options, **more})
        return lambda me, members: create(self.protocol, me, members, options)


ACKS = ("basic", "economical", "point-to-point")
IDS = ("static", "rotating")
BATCHES = ("run-length", "unit")
LOOKAHEADS = (0, 3)


def single_phase_variants() -> list[Variant]:
    """All combinations that exist: lookahead saves acknowledgements, which `basic` always sends."""
    return [
        Variant("single-phase", {"acks": acks, "ids": ids, "batches": batches, "lookahead": lookahead})
        for acks, ids, batches, lookahead in product(ACKS, IDS, BATCHES, LOOKAHEADS)
        if not (lookahead and acks == "basic")
    ]


def hierarchy_variants() -> list[Variant]:
    """Groups of four and more have two layers."""
    shape = {"branching": 2}
    return [
        Variant("hierarchy", {**shape, "inside": "matrix", "encoding": "adaptive"}),
        Variant("hierarchy", {**shape, "inside": "coordinator"}),
        Variant("hierarchy", {**shape, "inside": "mixed", "encoding": "changes"}),
    ]


def variants() -> list[Variant]:
    """Those of the protocols that have some, and every other protocol of the registry as it comes."""
    several = {
        "single-phase": single_phase_variants(),
        "hierarchy": hierarchy_variants(),
        "matrix": [Variant("matrix", {}), Variant("matrix", {"encoding": "adaptive"})],
    }
    return [variant for name in PROTOCOLS for variant in several.get(name, [Variant(name, {})])]
