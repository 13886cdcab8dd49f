"""Single-phase total and causal order.

Every operation gets its position in the total order when it is generated: its logical time, and among equal times the
rank of its member. There is no second phase in which a position is agreed upon; a member only has to find out when no
operation can still come that belongs earlier. Each member therefore records the latest logical time it has seen of
every other (LCV). Links keep their order, so the next operation of member i will carry at least LCV[i]+1; the
smallest of these next positions is the *frontier*, and whatever lies below it is *stable* and is delivered. Operations
carry the times that this needs; a member that has nothing to send acknowledges with its clock, and under the
economical scheme only where its last multicast (MRMT) does not already say enough. The busier the group, the fewer
acknowledgements there are and the shorter operations wait.

A run of k operations takes k consecutive times. `run-length` batches order each operation by its own time, so that
others' operations may come between them; `unit` batches stay together at the position of their first time. In both, clocks
and acknowledgements speak of the last time.

Source: C. Sun and P. Maheshwari, "A Single Phase Protocol for Total and Causal Ordering of Group Operations in
Distributed Systems", Journal of Computing and Information 2(1), 1996: Protocol 1 (`basic`), Protocol 2
(`economical`) and the point-to-point scheme that its conclusion announces (`point-to-point`).

Assumes: reliable FIFO links, a fixed group, or one view of a group that changes. Delays need no bound. A silent crash stops
everybody until the next view.

Guarantees: integrity, agreement, one total order that extends causality. Where a view ends, all who go on to the next have
delivered the same; one that crashed may have delivered what nobody else will see, unless delivery waits for that (`views`).

Departures, by the names of docs/papers.md: only operations advance a receiver's clock, acknowledgements do not (E-S1:
the paper has both; lookahead needs this one). Rotating ranks use the operation's own time, not a member's clock, which
differs between members (E-S3). A time is taken and sent in one step (E-S6). An origin waits up to twice the delay for its
own operation, not once (E-S2). Names: LCV is `clocks`, MRMT is `announced`, PMQ is the heap `_pending`.

Cost per operation, N members: `basic` N multicasts; `economical` 1 to N multicasts, or up to N-1 plus (N-1)² packets
point to point; `point-to-point` at most 3(N-1) packets, for up to one more delay at remote members.
"""

from quire.protocols.single_phase.packets import Acknowledgement, Operations, Relay
from quire.protocols.single_phase.positions import frontier, need, rank
from quire.protocols.single_phase.protocol import SinglePhase, SinglePhaseOptions

__all__ = [
    "Acknowledgement",
    "Operations",
    "Relay",
    "SinglePhase",
    "SinglePhaseOptions",
    "frontier",
    "need",
    "rank",
]  # fmt: skip
