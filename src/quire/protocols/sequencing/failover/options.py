"""What a sequencing service that survives may be asked to be."""

from __future__ import annotations

from typing import Annotated

import msgspec

from quire.protocols.sequencing.options import SequencingOptions


class SurvivingOptions(SequencingOptions, frozen=True, kw_only=True):
    backups: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    """How many other processes know all that a sequencer knows, and go on for it when it is lost."""
