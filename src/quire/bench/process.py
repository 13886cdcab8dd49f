"""`python -m quire.bench.process`: one process of a benchmark. It reads its assignment from standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping

from quire.bench import group, mesh, sequencing
from quire.bench.assignment import Failed
from quire.bench.pipe import Pipe
from quire.live.runs.member import run
from quire.model.errors import QuireError


def _zeromq() -> Mapping[str, Callable[[Pipe], None]]:
    from quire.bench import zeromq

    return {
        "zmq sequencer": zeromq.sequencer,
        "zmq 1": lambda pipe: zeromq.member(pipe, together=1),
        "zmq 64": lambda pipe: zeromq.member(pipe, together=64),
        "zmq latency": zeromq.latency,
    }


_ASYNCHRONOUS = {
    "quire runs": group.throughput,
    "quire messages": lambda pipe: group.throughput(pipe, messages=True),
    "quire calls": lambda pipe: group.throughput(pipe, messages=True, calls=True),
    "quire trace": lambda pipe: group.throughput(pipe, trace=True),
    "quire secret": lambda pipe: group.throughput(pipe, secret=True),
    "quire latency": group.latency,
    "quire fast latency": lambda pipe: group.latency(pipe, delivery="fast"),
    "quire fixed": group.fixed_throughput,
    "quire fast": lambda pipe: group.throughput(pipe, delivery="fast"),
    "quire journal": lambda pipe: group.throughput(pipe, journal=True),
    "quire durable latency": group.durable_latency,
    "quire sequencer": sequencing.throughput,
    "quire sequencer direct": lambda pipe: sequencing.throughput(pipe, direct=True),
    "quire combined sequencer": sequencing.sequencer,
    "quire combined sequencer direct": lambda pipe: sequencing.sequencer(pipe, direct=True),
    "ceiling opaque": lambda pipe: mesh.throughput(pipe, objects=False),
    "ceiling objects": lambda pipe: mesh.throughput(pipe, objects=True),
    "raw latency": mesh.latency,
}


def main() -> None:
    pipe = Pipe()
    name = pipe.assignment.contender
    try:
        if name in _ASYNCHRONOUS:
            run(_ASYNCHRONOUS[name](pipe))
        else:
            _zeromq()[name](pipe)
    except QuireError as error:
        pipe.say(Failed(str(error)))
        sys.exit(1)
    # Exit at once: a contender's sockets and threads may not end by themselves, and everything has been reported.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
