"""The input queues of a member that cannot take its input yet, because it is paused or its window is full.

Local submissions have their own FIFO queue, ahead of remote input. If they were put at the head of one common queue, two
waiting ones would come out in reverse. Unlimited priority would starve remote input, and with it the stability of all messages;
so while remote input waits, at most one local submission is taken for each remote packet.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Local = TypeVar("Local")
Remote = TypeVar("Remote")


class Inbox(Generic[Local, Remote]):
    def __init__(self) -> None:
        self.local: deque[Local] = deque()
        self.remote: deque[Remote] = deque()
        self._remote_turn = False

    def __bool__(self) -> bool:
        return bool(self.local or self.remote)

    def next_is_local(self) -> bool:
        """Whether the next input to take is a local one. The inbox must not be empty."""
        return bool(self.local) and not (self.remote and self._remote_turn)

    def take_local(self) -> Local:
        self._remote_turn = True
        return self.local.popleft()

    def take_remote(self) -> Remote:
        self._remote_turn = False
        return self.remote.popleft()
