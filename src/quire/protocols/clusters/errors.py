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
    """A site is not in the cluster in which it has to be."""

    def __init__(self, site: int, cluster: int) -> None:
        super().__init__(f"site {site} is not a member of cluster {cluster}; choose one of its members")
        self.site = site
        self.cluster = cluster


class UnknownSite(BadInput):
    """Nothing can be sent to a site that is not in the hierarchy, or no longer."""

    def __init__(self, site: int) -> None:
        super().__init__(f"there is no site {site} in the hierarchy; send to one that has joined and not left")
        self.site = site


class UnknownDestination(UnknownSite):
    """A message is addressed to a member that is not in the hierarchy, or no longer."""


class ChangeUnderWay(BadInput):
    """Membership changes one step at a time."""


class StaleIncarnation(ProtocolViolation):
    """A peer speaks for an incarnation that has left or moved away."""


class BufferOverflow(HoldBackFull):
    """A site holds back as much as it may, of what one cluster cannot deliver yet."""

    def __init__(self, site: int, cluster: int, sender: int, held: int) -> None:
        super().__init__(f"site {site} holds back {held} messages and has no room for one of {sender} in cluster {cluster}")
        self.cluster = cluster
        self.sender = sender


class GapTimeout(QuireError):
    """Something is held back for a packet that has not come in all the time that its driver would wait."""

    def __init__(self, site: int, cluster: int, sender: int, number: int) -> None:
        super().__init__(
            f"site {site} waits in cluster {cluster} for packet {number} of site {sender}, which has not come; "
            "without it nothing that was sent after it can be delivered"
        )
        self.cluster = cluster
        self.sender = sender
        self.number = number
