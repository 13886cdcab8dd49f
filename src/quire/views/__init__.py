"""Groups whose membership changes: views, view changes, and recovery after a crash.

A *view* is a numbered list of members. Every ordering protocol runs inside one view, whose members are fixed. A view change
is one decision: the members agree on the next view and on which messages belong to the old one, so that all who go on to the
next view have delivered the same messages in the old one.

process.py  a whole process: a member, its links to the others, and the failure detector; both drivers run this
member.py   one member: a state machine that takes inputs and returns effects; everything else here is a part of it
view.py     views, quorums, ballots and the value that a ballot decides
packets.py  the packets that members send each other
records.py  the records in a member's journal; each is written before anything is sent that depends on it
effects.py  the effects that a member returns for its driver to carry out
codec.py    packets and records as bytes

peers.py          the other processes, and the links to them, which outlive single connections
directory.py      which processes are known, their addresses and their connections
introductions.py  the handshake on a new connection
dialling.py       which addresses to connect to, and when to retry
liveness.py       the failure detector: which processes are suspected, and why
stalls.py         reports for operators: messages held back for long, and peers that acknowledge nothing
pace.py           when a member's timer runs
timing.py         timeouts

core.py           the state that all parts of a member share, and the effects that they add
membership.py     view changes, joining, exclusion and recovery, as one process goes through them
reception.py      which part of a member handles which packet
ordering.py       normal operation in one view
agreement.py      the agreement that ends a view
previous_view.py  the outcome of the last view change, kept for processes that have not learned it
catching_up.py    state transfer to a process that wants to join
operations.py     the operations that the application submitted, until they are executed
restarting.py     a member's state, recovered from its journal

unstable.py     the messages of a view that a member holds because they are not stable yet
knowledge.py    what each member is known to hold and to have delivered
flow.py         flow control: the send window, and when senders are told that their messages are delivered
holders.py      which members acknowledge a message at once, to whom, and when
relaying.py     which members to blame for messages that were not relayed
waiting_run.py  messages that are held back, and why
standstill.py   what makes no progress in a view, and which members to blame
closure.py      the largest causally closed part of a view
ballots.py      the ballot that a member leads, and the value that it proposes
history.py      recently delivered messages, kept for processes that catch up
reads.py        reads from the local state that see every operation completed before they began
"""
