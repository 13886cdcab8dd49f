"""Live groups whose members change: a process of `quire.views` on sockets, files and one timer.

group.py        the group as the application sees it
deliveries.py   the deliveries and events that wait for the application, in order
iterating.py    the iterators over these
submitting.py   the operations that the application submitted, until they are executed
quorum.py       whether a majority can be reached, and the events about that
unread.py       reports an application that does not read
counting.py     metrics
status.py       the status, for observers
joining.py      the settings of a member, checked
events.py       the messages and events that an application iterates over
node.py         the driver: feeds a process its inputs, and carries out its effects
connection.py   one connection to a process that introduces itself by name
mismatch.py     how founders whose settings do not fit tell each other
disk.py         the journal: records as bytes, and checkpoints
replica.py      the group's state: commands, snapshots, reads
state.py        the application's objects as one state, in chunks and back
recording.py    the member's part of a trace
sessions.py     the sessions that have executed commands, and which of them have ended
"""
