"""Causal order that scales: clusters of sites, ordered each by itself, joined to a tree by agents who relay."""

from quire.protocols.hierarchy.protocol import Hierarchy, HierarchyOptions

__all__ = ["Hierarchy", "HierarchyOptions"]
