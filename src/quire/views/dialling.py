"""Which addresses to connect to, and when: at once at first, then with growing pauses while attempts fail."""

from __future__ import annotations

from collections.abc import Collection

PAUSES_S = (0.002, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
SELDOM_S = 5.0
"""The pause for processes that are no members, which look for the group themselves, and for those that do not fit."""

_LASTING_S = 0.2
"""A connection that lasted this long does not count as a failed attempt."""


class _Attempts:
    def __init__(self, at: float) -> None:
        self.at = at
        """When to try next."""
        self.in_vain = 0
        self.under_way = False
        self.connected_at: float | None = None


class Dialling:
    def __init__(self) -> None:
        self._attempts: dict[str, _Attempts] = {}
        self.at = 0.0
        """When `due` has to be called next."""

    def due(self, now: float, often: Collection[str], seldom: Collection[str]) -> list[str]:
        """The addresses to be dialled now, of those to which there is no connection."""
        found: list[str] = []
        self.at = now + SELDOM_S
        for address in (*often, *(other for other in seldom if other not in often)):
            attempts = self._attempts.get(address)
            if attempts is None:
                attempts = self._attempts[address] = _Attempts(now)
            if attempts.under_way:
                continue
            at = attempts.at + (0.0 if address in often or not attempts.in_vain else SELDOM_S)
            if at <= now:
                attempts.under_way = True
                found.append(address)
            else:
                self.at = min(self.at, at)
        return found

    def wait(self, address: str, until: float) -> None:
        """Do not make the first attempt before then: the other side makes it."""
        self._attempts.setdefault(address, _Attempts(until))

    def failed(self, address: str, now: float, *, hopeless: bool = False) -> None:
        """`hopeless`: the process there does not belong to this group, which will hardly change."""
        attempts = self._of(address, now)
        attempts.under_way, attempts.connected_at = False, None
        attempts.at = now + (SELDOM_S if hopeless else PAUSES_S[min(attempts.in_vain, len(PAUSES_S) - 1)])
        attempts.in_vain += 1

    def reached(self, address: str, now: float) -> None:
        """There is a connection with the process at this address."""
        attempts = self._of(address, now)
        attempts.under_way = False
        attempts.connected_at = now

    def lost(self, address: str, now: float) -> None:
        """That connection has ended. Dial again to find out whether the process has ended too: at once, unless connections to
        it end as soon as they are made."""
        attempts = self._of(address, now)
        lasted = attempts.connected_at is not None and now - attempts.connected_at >= _LASTING_S
        if attempts.in_vain and not lasted:
            self.failed(address, now)
        else:
            attempts.in_vain = 1
            attempts.at, attempts.connected_at = now, None

    def _of(self, address: str, now: float) -> _Attempts:
        return self._attempts.setdefault(address, _Attempts(now))
