"""Live groups whose members change: a process of `quire.views` on sockets, files and one timer.

group.py        what an application holds
deliveries.py   what waits for it, in order
iterating.py    the ways to go through that
submitting.py   what it has submitted, until that is executed
quorum.py       whether a majority can be reached, and what it is told of that
unread.py       a report where it does not read
counting.py     what is counted
joining.py      what it is told when it joins, checked
events.py       what it is told as it goes
node.py         the process: feeds it what happens, and does what it asks for
connection.py   one connection to somebody who says who it is
misfits.py      what founders whose settings do not fit together tell the others
disk.py         the journal: records in, synced out, and a checkpoint when it grows
replica.py      the group's state: commands, snapshots, reads
state.py        the application's objects as one state, in chunks and back
recording.py    what of all this is in a trace
sessions.py     who has executed commands, and who of them is gone
"""
