"""Serialisable transactions over replicated keys, by timestamp ordering.

The idea: a transaction takes a timestamp when it starts, and the order of timestamps is the serialisation order. A write is
kept next to the value as a *prewrite* until its transaction ends; replicas remember the youngest reader of each key. A request
that would come too late in that order is refused, and its transaction aborts and may retry with a new timestamp, under which it
cannot be overtaken again (`claims`); a read that comes too early waits. There are no deadlocks, and nobody sees uncommitted
values.

Source: T. Enokido, T. Tachikawa, M. Takizawa, *Group Protocol for Transaction-Oriented Applications*, for read one, write
all and for insignificant operations; strict timestamp ordering after Bernstein, Hadzilacos, Goodman, *Concurrency Control
and Recovery in Database Systems* (1987), chapter 4; decisions by majorities after Gray and Lamport, *Consensus on
Transaction Commit* (2006).

Assumes: packets may be lost, repeated, overtaken and arbitrarily late. With `all`, nobody crashes. With `majority`, any
client and any minority of the replicas may; a replica comes back with its disk, or asks the others. With their disks all
may crash at once.

Guarantees: committed transactions are serialisable in the order of their timestamps; replicas are equal when nothing is
going on; no value of a transaction that did not commit is ever seen by another. With `majority`, nobody waits for a
client or a replica that is gone. Who tries again gets through in a bounded number of tries, while nobody crashes and packets
arrive.

Departures from the paper, whose protocol is wrong as printed, by the names of docs/papers.md: prewrites and commit (T4: it
cannot undo), read timestamps (T3: it is not serialisable), its own writes and equal versions may be read (T1, T2: it aborts),
timestamps order its queue (T5: its rule is cyclic), stability is a floor of all clients' clocks (T8), and of two writes the
earlier is the insignificant one, and is kept until the later has committed (T6, T7).

Cost: with `all`, a read is a round trip to one replica, a write to all of the key's, and the commit is one way. With
`majority`, each is a round trip to all of the key's replicas that ends with the majority's answer, and so is the commit. A
transaction that was refused sends one packet more to each replica of its keys, for which nobody waits.
"""
