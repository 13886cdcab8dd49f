"""The errors of trees of clusters. Each text is one sentence that says what to do."""

from __future__ import annotations

from quire.model.errors import BadInput, HoldBackFull, ProtocolViolation, QuireError


class InvalidHierarchy(BadInput):
    """The clusters described do not form a hierarchy."""


class DuplicateSite(InvalidHierarchy):
    """A site is named twice on one layer."""

    def __init__(self, site: int, layer: int) -> None:
        super().__init__(f"site {site} appears twice on layer {layer}; name it once")
        self.site = site


class NotInCluster(InvalidHierarchy):
    """A site is not in the cluster in which it must be."""

    def __init__(self, site: int, cluster: int) -> None:
        super().__init__(f"site {site} is not a member of cluster {cluster}; choose one of its members")
        self.site = site
        self.cluster = cluster


class UnknownSite(BadInput):
    """The site is not in the hierarchy, or no longer in it, so nothing can be sent to it."""

    def __init__(self, site: int) -> None:
        super().__init__(f"there is no site {site} in the hierarchy; send to one that has joined and not left")
        self.site = site


class UnknownDestination(UnknownSite):
    """A message is addressed to a member that is not in the hierarchy, or no longer in it."""


class ChangeUnderWay(BadInput):
    """Another change of membership is in progress; there is one at a time."""


class StaleIncarnation(ProtocolViolation):
    """A peer speaks for an incarnation that has left or moved away."""


class BufferOverflow(HoldBackFull):
    """A site already holds back as many messages of a cluster as it may."""

    def __init__(self, site: int, cluster: int, sender: int, held: int) -> None:
        super().__init__(f"site {site} holds back {held} messages and has no room for one of {sender} in cluster {cluster}")
        self.cluster = cluster
        self.sender = sender


class GapTimeout(QuireError):
    """Messages are held back for a packet that did not arrive before the driver's deadline."""

    def __init__(self, site: int, cluster: int, sender: int, number: int) -> None:
        super().__init__(
            f"site {site} waits in cluster {cluster} for packet {number} of site {sender}, which has not come; "
            "without it nothing that was sent after it can be delivered"
        )
        self.cluster = cluster
        self.sender = sender
        self.number = number
