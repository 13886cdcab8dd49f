"""An account with money in it, on which tests build theirs."""

from __future__ import annotations

from quire.objects.call import Call
from quire.objects.declare import Object, operation


class BaseAccount(Object):
    balance = 0

    @operation
    async def deposit(self, call: Call, amount: int) -> int:
        self.balance += amount
        return self.balance

    @deposit.undo
    def take_back(self, call: Call, amount: int) -> None:
        self.balance -= amount
