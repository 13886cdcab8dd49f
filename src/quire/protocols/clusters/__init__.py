"""Causal order inside clusters, and the relay that joins clusters to a tree.

This is what flat and hierarchical groups share, and no protocol itself: how a cluster orders the messages of its members
(`matrix`, `coordinator`), how a message is routed through a tree of clusters (`tree`), the packets (`packets`), and a site that
belongs to some of the clusters (`site`).
"""
