"""Groups that change, under faults: whole members on virtual links and disks, every step chosen from a seed.

world.py        processes, links and disks; what can happen to them, one step at a time
observer.py     what must hold at every step, whatever happened
chaos.py        random runs: faults for a while, then none
settling.py     without faults everything must come to rest
"""
