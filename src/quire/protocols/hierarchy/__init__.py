"""Causal order that scales: clusters of sites, ordered each by itself, joined to a tree by agents who relay."""

from quire.protocols.hierarchy.protocol import Hierarchy, Options

__all__ = ["Hierarchy", "Options"]
