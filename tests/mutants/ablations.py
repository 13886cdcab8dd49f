"""Every rule that the specifications of views and of services show to be needed, by taking it away: the wrong rules that do so
here."""

from __future__ import annotations

VIEWS: dict[str, tuple[str, ...]] = {
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

SERVICES: dict[str, tuple[str, ...]] = {
    # Sequencers with backups.
    "output before it is replicated": ("R2: what follows from an input leaves before the backups have it",),
    "acknowledgements out of order": ("R3: records are applied and acknowledged in the order in which they come",),
    "a backup acknowledges an old epoch": ("R4: records of an epoch that is over are acknowledged",),
    "promotion from an epoch that never was live": (
        "R6: an epoch that is over becomes live",
        "R7: a copy of an epoch that never was live becomes primary",
    ),
    "an excluded replica drops its state": ("R8: who is excluded forgets its state before the others have it",),
    "a unit is split": ("a unit is split at a failover",),
    "duplicates are not replicated": ("what a sender's messages were numbered is not replicated",),
    "requests are not replicated": ("the last request of a client is not replicated",),
    "suspended is not replicated": ("that a group is suspended is not replicated", "what is given away is not replicated"),
    "incoming is not replicated": ("what is taken is not replicated",),
    "departing is not replicated": ("who is departing is not replicated",),
    "a source resumes by itself": ("M3: a sequencer takes back what it gives away when that takes long",),
    "no mark of what is settled": (
        "M5: a late transfer of a move that has ended is taken",
        "which moves have ended is not replicated",
    ),
    "an entry is deleted without its request": ("J3: the directory forgets a client that has joined again",),
    "evicted clients depart": ("E2: an evicted client is waited for as one that leaves",),
    "no eviction after an activation": ("E2: an evicted client stays in a group that was on its way",),
    "no fence for clients": ("E3: what an evicted client asks for is carried out",),
    # Sequencers without backups.
    "clients do not compare epochs": (
        "R10: who has testified believes what comes of an earlier life of a group",
        "R10: who testifies does not promise the epoch",
    ),
    "not all answer": (
        "Z3: a unit goes on before all have testified",
        "Z4: a group goes on without somebody who cannot testify",
    ),
    "acknowledged before a member has it": ("Z2: a sender is told a number before a member has the message",),
    "mentioned numbers are not counted": ("Z5: numbers that are only mentioned are given again",),
    # Stores.
    "nobody ends transactions": ("T4: nobody ends what a client left behind",),
    "an abort without the others": ("T4: a replica aborts by itself what a client left behind",),
    "only the client decides": ("T3: a client decides alone",),
    "what was accepted is ignored": ("T4: what may have been accepted is aborted", "the oldest accepted decision is proposed"),
    "promises are ignored": (
        "T4: a decision is accepted in spite of a later promise",
        "accepting a ballot does not promise it",
    ),
    "no read timestamps": ("T2: nobody remembers who has read",),
    "read timestamps are forgotten at a restart": ("T7: a restart forgets who has read", "what was read is not written"),
    "an inherited prewrite is a vote": ("T8: a prewrite that others told of counts as a vote",),
    "back without a transfer": ("T8: a replica that lost its disk begins with nothing",),
    "a transfer from one": ("a replica without its disk asks one replica too few",),
    "incarnations are not compared": ("T8: votes from before a disk was lost count",),
    "prewrites are not transferred": ("T8: a replica that lost its disk is not told of prewrites",),
    "promises and what was accepted are not transferred": (
        "T8: a replica that lost its disk is not told of promises",
        "T8: a replica that lost its disk is not told of what was accepted",
    ),
    "read one": ("T2: a read counts when one replica has answered it",),
    "the own ballot is not durable": ("T4: a ballot of its own is not written",),
    # Objects.
    "no flush": ("what came to some of those who go on does not come to the others",),
    "no fence": ("something is taken from a member after it was told what there is of it",),
    "who is suspected is not waited for": ("nobody waits for the clock of a member that is suspected",),
    "calls do not fail": ("a call waits for a host that is gone",),
    "orphans go on": ("who has lost a caller goes on",),
    # What is forgotten.
    "vectors are pruned too early": ("the oldest message that waits counts as delivered",),
    "contexts are pruned too early": ("5.2: a context forgets what not everybody has delivered",),
}
