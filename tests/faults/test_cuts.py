"""Hosts that cannot reach each other for a while: in both directions or in one, without a word to anybody."""

from __future__ import annotations

import subprocess
import sys

from tests.kit.patience import PATIENCE_S
from tests.live.hosts import Hosts, hosts

_LISTEN = """
import socket, sys
inbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
inbox.bind(("0.0.0.0", 7000))
print("ready", flush=True)
while True:
    text, _ = inbox.recvfrom(100)
    print(text.decode(), flush=True)
"""
_SEND = "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(sys.argv[2].encode(), (sys.argv[1], 7000))"


class Listener:
    """What arrives at a host, as datagrams: each is there or is lost."""

    def __init__(self, here: Hosts, host: int) -> None:
        command = [*here.on(host), sys.executable, "-c", _LISTEN]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.next() == "ready"

    def next(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


def send(here: Hosts, source: int, target: int, text: str) -> None:
    subprocess.run([*here.on(source), sys.executable, "-c", _SEND, here.ipv4[target], text], check=True)


def test_a_cut_is_in_one_direction_and_ends_when_it_is_healed_as_often() -> None:
    with hosts(3) as here, Listener(here, 0) as zero, Listener(here, 1) as one:
        here.cut([(0, 1)])
        here.cut([(0, 1), (0, 2)])
        send(here, 0, 1, "lost")
        send(here, 1, 0, "the other way")
        assert zero.next() == "the other way"
        here.heal([(0, 1)])
        send(here, 0, 1, "lost, too")
        here.heal([(0, 1)])
        send(here, 0, 1, "there again")
        assert one.next() == "there again"
        here.heal_all()
