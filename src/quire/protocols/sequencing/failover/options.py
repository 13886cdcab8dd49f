"""The options of a sequencing service with failover."""

from __future__ import annotations

from typing import Annotated

import msgspec

from quire.model.errors import BadInput
from quire.protocols.sequencing.options import SequencingOptions


class SurvivingOptions(SequencingOptions, frozen=True, kw_only=True):
    backups: Annotated[int, msgspec.Meta(ge=0, le=8)] = 1
    """How many processes know what the primary of a unit knows; 0: it is rebuilt from what the members of its groups know."""
    silent_ticks: Annotated[int, msgspec.Meta(ge=1, le=1 << 20)] = 200
    """Without backups: how many ticks a client may take to say what it knows; then it is evicted, and its groups are lost."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.backups and self.pipelined:
            raise BadInput("without backups clients wait for the numbers of their messages: pipelined needs a backup")

    @property
    def blocking(self) -> bool:
        """Whether a client waits for each number: if messages can be lost with their sequencer, none may be older than one
        that is not lost."""
        return super().blocking or not self.backups

    @property
    def remembered(self) -> bool:
        return not self.backups
