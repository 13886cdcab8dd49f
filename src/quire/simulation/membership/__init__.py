"""Simulation of groups with changing membership under faults: members on virtual links and disks, in seeded runs.

hosts.py        the hosts of processes: their disks and applications
world.py        members on ideal links, one step at a time
network.py      virtual connections; processes.py has whole processes on them, one step at a time
timed.py        the same processes in simulated time
observer.py     the invariants that must hold at every step
chaos.py        random runs: faults for a while, then none
settling.py     once faults end, the group must converge
"""
