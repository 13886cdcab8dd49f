"""Transactions as applications write them, the same programs in the simulator and live.

    async with store.transaction() as t:
        balance = await t.read("alice")
        await t.write("alice", balance - 10)

The protocols below decide what a transaction may see; the layers above, simulation or live, how coroutines are run and packets
are sent.
"""
