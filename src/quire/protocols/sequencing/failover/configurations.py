"""Configurations: which processes run a unit, as primary and backups, in one epoch."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

REGISTER = -1
"""The register, as an address among units."""
CLIENT = -2
"""Whatever client sends or gets a letter."""


class Name(NamedTuple):
    """A process: its address, and how many times one was started there before. The state of earlier incarnations is lost."""

    address: int
    life: int


class Configuration(msgspec.Struct, frozen=True, array_like=True):
    unit: int
    epoch: int
    primary: Name
    backups: tuple[Name, ...]
    live: bool = False
    """Whether all of them have the unit's state, so that it works."""
    fresh: bool = False
    """Whether the unit begins with nothing, as no epoch of it was ever live, or everything is lost."""
    rebuilt: bool = False
    """Whether the unit begins with what the members of its groups know, as nobody else does."""
    life: int = 0
    """Of a unit without backups: which life of its groups begins, a number that is greater than any before."""
    settled: int = -1
    """Of one that is fresh: all moves up to this one have ended, and what comes late of them is about groups that are lost."""

    @property
    def names(self) -> tuple[Name, ...]:
        return (self.primary, *self.backups)


class Routes:
    """Which process runs which unit, as far as this process knows. Knowledge of an epoch is never replaced by that of an
    earlier one."""

    def __init__(self) -> None:
        self.version = -1
        """How many changes the register had made when it last told of all."""
        self.configurations: dict[int, Configuration] = {}
        self.epochs: dict[int, int] = {}
        self.primaries: dict[int, int] = {}

    def learn(self, version: int, configurations: tuple[Configuration, ...]) -> list[Configuration]:
        """The register says who runs what; returns what of it is new."""
        self.version = max(version, self.version)
        news = [each for each in configurations if self._is_news(each)]
        for each in news:
            self.configurations[each.unit] = each
            self.epochs[each.unit] = max(each.epoch, self.epochs.get(each.unit, -1))
            self.primaries[each.unit] = each.primary.address
        return news

    def went_live(self, unit: int, epoch: int) -> None:
        """The register says that the unit works in this epoch."""
        found = self.configurations.get(unit)
        if found is not None and found.epoch == epoch:
            self.configurations[unit] = msgspec.structs.replace(found, live=True)

    def _is_news(self, found: Configuration) -> bool:
        if found.epoch < self.epochs.get(found.unit, -1):
            return False
        known = self.configurations.get(found.unit)
        return known is None or (found.epoch, found.live) > (known.epoch, known.live)

    def heard(self, unit: int, epoch: int, address: int) -> None:
        """The process at this address spoke for a unit in this epoch, which is not earlier than any epoch known here."""
        self.epochs[unit], self.primaries[unit] = epoch, address

    def known(self) -> tuple[Configuration, ...]:
        return tuple(self.configurations.values())
