"""A sequencing service that survives its processes.

A *unit* is a sequencer as clients and the register know it: it has a number that stays, whatever process runs it. A process has
copies of several units. One copy is the *primary*, which does what a sequencer does; the others are its *backups*, which do the
same after it. Who is what is a *configuration*, and each has its *epoch*. The *register* is the directory, and decides who runs
which unit. Read `replica` first: it says why nothing that anybody has seen is ever lost.
"""

from quire.protocols.sequencing.failover.client import SurvivingClient
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.failover.process import SequencerProcess
from quire.protocols.sequencing.failover.register import Register

__all__ = ["Register", "SequencerProcess", "SurvivingClient", "SurvivingOptions"]
