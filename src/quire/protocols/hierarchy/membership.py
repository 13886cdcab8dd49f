"""Stub."""

from __future__ import annotations

from quire.protocols.clusters.site import Site


class Changing(Site):
    """A site of a hierarchy whose members may change."""
