"""Objects as applications write them, the same classes in the simulator and live.

    class Account(quire.Object):
        conflicts = {("withdraw", "withdraw"), ("deposit", "withdraw")}

        @quire.operation
        async def deposit(self, call, amount): ...

An operation is a coroutine; it calls other objects with `await call.invoke(targets, "op", …)`, and ends by returning
(commit) or raising (abort). The protocol below decides when it may start; the layers above, simulation or live, how coroutines
are run and packets are sent.
"""
