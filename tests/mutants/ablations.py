"""Every rule of the specification of views that was shown to be needed, by taking it away: the wrong rules that do so here."""

from __future__ import annotations

ABLATIONS: dict[str, tuple[str, ...]] = {
    # How a view ends.
    "no freeze at a promise": ("whoever promises goes on as before",),
    "the old view is resumed on a timeout": ("a view goes on when a ballot comes to nothing",),
    "cut = shortest report": ("a view ends with what everybody reports",),
    "cut = the coordinator's own": ("a view ends with what its last leader reports",),
    "old members that did not report are admitted": ("those who report nothing are in the next view",),
    "no causal closure": ("an effect may be in a cut without its cause",),
    "accepted values are ignored": ("what may have been decided already is not proposed again",),
    "accept below the promise": ("a member votes in spite of a later promise",),
    "accept before the cut is held": ("a member votes before it holds the cut",),
    "quorum = half": ("half of the members are a majority",),
    "no quorum at all": ("anybody is a majority",),
    "input of later epochs is dropped": ("what comes before its view begins is lost",),
    "data of an older epoch is taken": ("what is left of an earlier view is taken for this one",),
    "no link numbers": ("a frame that came before is taken again", "one frame may be missing"),
    "no test of the highest incarnation": ("an incarnation that was in the group may come in again",),
    "sent again by own knowledge, not by the table": ("only what a member has seen executed is not sent again",),
    "queued operations are not sent again": ("what was not executed is not sent again",),
    "a snapshot of the present, not of the boundary": ("whoever joins begins with what was delivered in its view, too",),
    "how the last view ended is dropped at once": ("how a view ended is forgotten when one other has gone on",),
    "no lingering": ("whoever is in no view any more forgets how its last one ended",),
    "joiners are not told how the last view ended": ("whoever joins is not told how the view before ended",),
    "incarnations are not compared": (
        "a process goes on in a view that names an earlier incarnation of it",
        "a process that is started again with its journal is the incarnation that it was",
    ),
    "a restart without a journal under the same incarnation": (
        "a process that is started again without a journal is the incarnation that it was",
    ),
    "no gate where uniform is promised": ("a message is delivered before a majority holds it",),
    "what is held is told while frozen": ("a member that is between two views says what it holds",),
    # What must be durable.
    "a promise is not persisted": ("a promise is not written down",),
    "a promise before its sync": ("a promise is given before it is durable",),
    "what was accepted is not persisted": ("a vote is not written down",),
    "the own vote before its sync": ("the leader's own vote counts before it is durable",),
    "any vote before its sync": ("a vote is given before it is durable",),
    "how the last view ended is not persisted": ("how the last view ended is not written down",),
    "data before the sync of the operation": ("operations are sent before they are durable",),
    "what is held is told before its sync": ("a member says that it holds what is not durable",),
    "a member counts itself before its sync": ("a member counts itself as one that holds what is not durable",),
    # Runs, and what a ballot fetches.
    "runs are parted": (
        "runs that are asked for come one message at a time",
        "runs that a member lacks come to it one message at a time",
    ),
    "times given away are used": ("a member uses times that it has given away",),
    "remainder by static rank, where ids rotate": ("what is left of a view is ordered by ranks that do not rotate",),
    "what the coordinator lacks is cut": ("what the leader lacks is not fetched, but cut off",),
    "a pull goes on without a quorum": (
        "a ballot goes on without the promise of one who falls silent, though the others are no majority",
    ),
    # What is kept, and for how long.
    "what a majority delivered is trimmed": ("what most have delivered is kept no more",),
    "what all hold is trimmed": ("what all hold takes no room any more",),
    "no floor": ("what a sender knows to be delivered is not believed",),
    "no flow limit": ("a member sends without regard to what others have room for",),
    "the slow are never suspected": (
        "nobody is ever to blame for what does not move",
        "a member that holds everybody up is never suspected",
    ),
    # Coming in.
    "all deliveries are fed": ("whoever catches up gets what a later view may be without",),
    "the state of the present": ("a snapshot passes for one of the present",),
    "mixed checkpoints": ("parts of two members' snapshots are put together",),
    "rejoining at the own end, not uniform": ("whoever is left out goes on from all that it has delivered itself",),
    "a delta from a trimmed log": ("what is left of a history passes for all of it",),
    "a founder again after a restart": ("a founder founds whenever it is started",),
    "founders normal": ("the founding view carries messages",),
    # Closing, and reading.
    "drained is ignored": ("a group ends with something unsent",),
    "unaware drained counts": ("whoever has not heard that the group closes has sent everything, too",),
    "terminal by a quorum": ("a group ends without those who cannot be reached",),
    "the closed end at once": ("a member that has ended answers no more",),
    "a local read": ("a read asks nobody",),
    "a read without a quorum": ("a read needs only what the reader holds",),
    "a read is answered by delivered counts": ("to a read, members say what they have delivered",),
    "frozen members answer reads": ("members between two views answer reads",),
}
