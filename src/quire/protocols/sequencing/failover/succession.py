"""The register's rules of succession: which process is to run a unit next.

A unit is given only to a copy of its last live epoch, whatever was planned since and never became live: no other process is
sure to have its whole state. Others become backups. A unit that should have backups and has none waits: keeping what was
acknowledged is worth more than availability. A unit that is to have no backups is given to any process, which rebuilds it from
what clients know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quire.protocols.sequencing.failover.configurations import Configuration, Name


class Succession:
    """The succession of all units, from the moment when all `processes` have been present. `backups`: how many each unit
    should have."""

    def __init__(self, units: Sequence[int], backups: int, processes: int) -> None:
        self.units = tuple(units)
        self.configurations: dict[int, Configuration] = {}
        self.live: dict[int, tuple[Name, ...]] = {}
        """The processes that took part in the last live epoch of each unit."""
        self.version = 0
        self.waiting: set[int] = set()
        """Units that nobody may run now."""
        self._backups = backups
        self._processes = processes
        self.there: set[Name] = set()
        self.lives: dict[int, int] = {}
        self.settled = -1
        """All moves up to this one had ended when a unit last began anew."""

    def arrived(self, name: Name) -> bool:
        """A process is present; returns whether that changes anything. Any earlier process at its address is gone for good."""
        if name.life < self.lives.get(name.address, -1) or name in self.there:
            return False
        self.lives[name.address] = name.life
        self.there = {each for each in self.there if each.address != name.address} | {name}
        # Whoever came back may have been the last copy of a unit that nobody can be chosen for.
        return self._reconsider() or bool(self.gone())

    def missed(self, name: Name) -> bool:
        """A process is reported as lost. If that is wrong, it will say so."""
        if name not in self.there:
            return False
        self.there.discard(name)
        return self._reconsider()

    def in_sync(self, unit: int, epoch: int) -> bool:
        """Every copy of this epoch has the state; returns whether the epoch is live now."""
        found = self.configurations.get(unit)
        if found is None or found.epoch != epoch:
            return False
        if not found.live:
            self.live[unit] = found.names
            self._set(Configuration(unit, epoch, found.primary, found.backups, live=True))
        return True

    def gone(self) -> list[int]:
        """Units of which no copy is left: all processes of their last live epoch have restarted."""
        if not self._backups:
            return []
        return [unit for unit, names in self.live.items() if all(name.life < self.lives[name.address] for name in names)]

    def begin_anew(self, unit: int, settled: int) -> None:
        """Nothing is left of the unit: its next primary begins with an empty state. `settled`: the last move that has ended."""
        del self.live[unit]
        self.settled = settled
        self._reconsider()

    def _set(self, configuration: Configuration) -> None:
        self.configurations[configuration.unit] = configuration
        self.version += 1

    def _reconsider(self) -> bool:
        """Change the configuration of units that have lost a process, or that lack a backup which can be added."""
        before = self.version
        if not self.configurations and len(self.there) < self._processes:
            return False
        for unit in self.units:
            found = self.configurations.get(unit)
            chosen = self._choose(unit, found)
            if chosen is None:
                if found is None or not self.there.issuperset(found.names):
                    self.waiting.add(unit)
                continue
            self.waiting.discard(unit)
            if found is None or chosen != found.names:
                epoch = 0 if found is None else found.epoch + 1
                fresh, rebuilt = unit not in self.live, chosen[0] not in self.live.get(unit, chosen)
                life = 0 if self._backups else self.version + 1
                settled = self.settled if fresh else -1
                self._set(Configuration(unit, epoch, chosen[0], chosen[1:], False, fresh, rebuilt, life, settled))
        return self.version != before

    def _choose(self, unit: int, found: Configuration | None) -> tuple[Name, ...] | None:
        """A primary and its backups, or None if no process may run the unit now."""
        first = self._primary(unit, found)
        if first is None:
            return None
        # Processes that already have most of the state are preferred, then those that run the fewest units.
        had = () if found is None else found.names
        known = (*self.live.get(unit, ()), *had)

        def preference(name: Name) -> tuple[bool, bool, int, Name]:
            return name not in had, name not in known, self._burden(name, unit), name

        chosen = sorted(self.there - {first}, key=preference)[: self._backups]
        return (first, *chosen) if chosen or not self._backups else None

    def _primary(self, unit: int, found: Configuration | None) -> Name | None:
        able: Iterable[Name] = self.there.intersection(self.live.get(unit, self.there))
        if not self._backups:
            able = able or self.there
        at_present = None if found is None else found.primary

        def preference(name: Name) -> tuple[bool, bool, int, Name]:
            return name != at_present, name.address != unit, self._burden(name, unit), name

        return min(able, key=preference, default=None)

    def _burden(self, name: Name, unit: int) -> int:
        others = (each for each in self.configurations.values() if each.unit != unit)
        return sum((each.primary == name) * 2 + (name in each.backups) for each in others)
