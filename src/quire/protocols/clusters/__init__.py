"""Causal order inside clusters, and the relay that joins clusters to a tree.

What flat and hierarchical groups share, and no protocol itself: how a cluster orders what its members send each other
(`matrix`, `coordinator`), how a message finds its way through a tree of clusters (`tree`), what is put on the wire
(`packets`), and a site that belongs to some of the clusters (`site`).
"""
