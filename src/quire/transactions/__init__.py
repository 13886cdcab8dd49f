"""Transactions as applications write them, the same programs in the simulator and live.

    async with store.transaction() as t:
        balance = await t.read("alice")
        await t.write("alice", balance - 10)

What lies below decides what a transaction may see; what lies above, simulation or live, how coroutines are run and packets
are carried.
"""
