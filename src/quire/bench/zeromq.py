"""The rival that a Python developer would write first: a ZeroMQ sequencer.

Members push to one process, which publishes everything to all of them; what one socket publishes, all receive in the same
order. The sequencer is ZeroMQ's own proxy, so it runs no Python code per message. Publishing waits for slow subscribers instead
of dropping, and every queue is as long as ZeroMQ makes it. There is no repair: a member that loses its connection loses
messages.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import zmq

from quire.bench.assignment import Report
from quire.bench.load import Supply, Tally
from quire.bench.pipe import Pipe

QUEUE_FRAMES = 256
"""How many frames each socket may queue; more is not faster, and takes longer to drain."""
BURST = 256
"""How many frames a member takes, or sends, before it looks at the other direction."""


def _context() -> zmq.Context[zmq.Socket[bytes]]:
    context = zmq.Context()
    context.setsockopt(zmq.SNDHWM, QUEUE_FRAMES)
    context.setsockopt(zmq.RCVHWM, QUEUE_FRAMES)
    return context


def sequencer(pipe: Pipe) -> None:
    """Publish what the members push, until all have everything."""
    context = _context()
    collect, publish = context.socket(zmq.PULL), context.socket(zmq.XPUB)
    publish.setsockopt(zmq.XPUB_NODROP, 1)
    publish.setsockopt(zmq.XPUB_VERBOSE, 1)  # Or it would tell only of the first that subscribes.
    collect.bind(f"tcp://{pipe.assignment.addresses[0]}")
    publish.bind(f"tcp://{pipe.assignment.addresses[1]}")
    # A member is connected when its subscription has come.
    for _ in range(pipe.assignment.members):
        publish.recv()
    threading.Thread(target=zmq.proxy, args=(collect, publish), daemon=True).start()
    pipe.ready()
    pipe.done()
    pipe.say(Report(me=pipe.assignment.me, cpu_s=pipe.cpu_s()))


def member(pipe: Pipe, *, together: int) -> None:
    """Send at full speed, so many messages a frame, and take everything."""
    assignment = pipe.assignment
    context = _context()
    push, subscribe = context.socket(zmq.PUSH), context.socket(zmq.SUB)
    push.connect(f"tcp://{assignment.addresses[0]}")
    subscribe.connect(f"tcp://{assignment.addresses[1]}")
    subscribe.setsockopt(zmq.SUBSCRIBE, b"")
    pipe.ready()
    supply, tally = Supply(assignment, together), Tally(assignment.size)
    frames = map(b"".join, supply.batches())
    waiting = next(frames)
    poller = zmq.Poller()
    poller.register(subscribe, zmq.POLLIN)
    poller.register(push, zmq.POLLOUT)
    while tally.senders_done < assignment.members:
        ready = dict(poller.poll())
        if subscribe in ready:
            taken = list(islice(_frames_here(subscribe), BURST))
            if together == 1:
                tally.take_each(taken)
            else:
                for frame in taken:
                    tally.take_together(frame)
        if push in ready:
            with suppress(zmq.Again):
                for _ in range(BURST):
                    push.send(waiting, zmq.NOBLOCK)
                    waiting = next(frames, b"")
                    if not waiting:
                        poller.unregister(push)
                        break
    pipe.report(pipe.done(), supply.sent, (tally,))


def _frames_here(socket: zmq.Socket[bytes]) -> Iterator[bytes]:
    with suppress(zmq.Again):
        while True:
            yield socket.recv(zmq.NOBLOCK)


def latency(pipe: Pipe) -> None:
    """One member pushes a message, waits until it comes back in its place, and pushes the next."""
    assignment = pipe.assignment
    context = _context()
    push, subscribe = context.socket(zmq.PUSH), context.socket(zmq.SUB)
    push.connect(f"tcp://{assignment.addresses[0]}")
    subscribe.connect(f"tcp://{assignment.addresses[1]}")
    subscribe.setsockopt(zmq.SUBSCRIBE, b"")
    pipe.ready()
    payload, took = bytes(assignment.size), []
    for _ in range(assignment.round_trips):
        began = time.perf_counter()
        if assignment.me == assignment.sender:
            push.send(payload)
        subscribe.recv()
        took.append((time.perf_counter() - began) * 1e6)
    pipe.done()
    pipe.say(
        Report(me=assignment.me, cpu_s=pipe.cpu_s(), round_trips_us=tuple(took) if assignment.me == assignment.sender else ())
    )
