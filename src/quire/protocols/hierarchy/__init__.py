"""Scalable causal order: clusters of sites that are each ordered separately, joined in a tree by agents that relay."""

from quire.protocols.hierarchy.protocol import Hierarchy, HierarchyOptions

__all__ = ["Hierarchy", "HierarchyOptions"]
