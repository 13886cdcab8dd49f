"""Random faults over real processes under load, from a seed: `make chaos`.

Each round starts the processes of a group or a service, has everything happen to them that can be said in words, and judges
what they recorded: nothing that was acknowledged is lost, nothing is there twice, and the orders hold. The same seed gives the
same faults at the same times; what the processes do meanwhile is up to the machine.
"""
