"""Groups that overlap in a ring: the layout that simulated and live runs of the service share."""

from __future__ import annotations

from typing import Annotated

import msgspec

from quire.model.errors import BadInput
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.options import SequencingOptions


class RingOptions(SequencingOptions, frozen=True, kw_only=True):
    """The options of the service, and the layout of groups and members."""

    sequencers: Annotated[int, msgspec.Meta(ge=1, le=256)] = 2
    groups: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 2
    overlap: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 1
    """How many members a group shares with the next; 0: none."""
    strangers: Annotated[int, msgspec.Meta(ge=0, le=1024)] = 0
    """How many members are in no group."""
    changes: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] = 0
    """How often a client leaves a group and joins it again."""
    moves: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] = 0
    """How often a group is moved to another sequencer, wanted or not."""
    backups: Annotated[int, msgspec.Meta(ge=0, le=8)] | None = None
    """How many sequencers know what another does and go on when it is lost, as in `SurvivingOptions`; None: none does."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backups is not None:
            self.surviving()
            if max(self.backups, 1) >= self.sequencers:
                raise BadInput(f"{self.backups} backups need more than {self.sequencers} sequencers")

    def surviving(self) -> SurvivingOptions:
        """The options of a service with failover. Raises BadInput if it cannot be set up like that."""
        common = {name: getattr(self, name) for name in SequencingOptions.__struct_fields__}
        return SurvivingOptions(**common, backups=self.backups or 0)

    def layout(self, members: int) -> dict[str, tuple[int, ...]]:
        """The members of each group. Raises BadInput if they cannot be laid out like that."""
        inside = members - self.strangers
        if inside < self.groups:
            raise BadInput(f"{self.groups} groups need as many members that are in one, not {inside}")
        if self.overlap * self.groups > inside * (self.groups - 1):
            raise BadInput(f"groups of {inside // self.groups} members cannot share {self.overlap} with the next")
        return ring(inside, self.groups, self.overlap)


def ring(members: int, groups: int, overlap: int) -> dict[str, tuple[int, ...]]:
    """Members divided into groups, each of which also has the first members of the next one."""
    starts = [group * members // groups for group in range(groups + 1)]
    return {
        f"g{group}": tuple(sorted(member % members for member in range(starts[group], starts[group + 1] + overlap)))
        for group in range(groups)
    }
