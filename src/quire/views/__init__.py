"""Groups whose members change: who is in the group, what every change of it delivers, and what survives a crash.

A *view* is a numbered list of members. All ordering protocols run inside one view, which is fixed; between two views the
members agree, once, on the next view and on what belongs to the old one, so that everybody who goes on has delivered the same.

process.py      a whole process: a member, its links to the others, and what is thought of them; both drivers run this
member.py       one member: a state machine that takes inputs and returns effects; everything else here is a part of it
view.py         views, quorums, ballots and what a ballot decides
packets.py      what members send each other
records.py      what a member writes to its journal, before it says what depends on it
effects.py      what a member asks to be done
codec.py        packets and records as bytes

peers.py          the other processes, and the links to them, which survive their connections
directory.py      who there is, and where
introductions.py  what two processes say to each other first
dialling.py       which addresses to connect to, and when
liveness.py       who is suspected, and why
pace.py           when a member's timer runs
timing.py         how long to wait for what

core.py         what all parts share: who the member is, and what it asks to be done
membership.py   from one view to the next, into one, and out of it
reception.py    what is done with a packet
ordering.py     normal operation in one view
agreement.py    how the members agree on the end of a view
aftermath.py    how the last view ended, for those who have not heard
catching_up.py  how somebody who is no member comes to the state of those who are
operations.py   what the application submitted, until it is executed
restarting.py   where a member was when its process ended

stock.py        the runs of a view that a member holds, until everybody has delivered them
knowledge.py    what each member is known to hold and to have delivered
witnessing.py   who tells whom that it holds a message, and when
relaying.py     who is to blame where messages are passed on
hindrance.py    messages that are held back, and why
closure.py      the largest part of a view that has all of its causes
ballots.py      the ballot that a member leads, and the value that it proposes
history.py      what was delivered lately, for those who catch up
reads.py        reads that see everything that was completed before they began
"""
