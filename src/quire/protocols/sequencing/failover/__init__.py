"""A sequencing service with failover (primary-backup replication), which survives the loss of processes.

A *unit* is a logical sequencer, as clients and the register know it: its number stays the same, whichever process runs it. A
process has copies of several units. One copy of a unit is the *primary*, which acts as the sequencer; the others are its
*backups*, which repeat what it does. The roles of all copies are a *configuration*, and each configuration has its *epoch*. The
*register* is the directory, and decides which processes run which unit. Read `replica` first: it says why nothing that anybody
has seen is ever lost.
"""

from quire.protocols.sequencing.failover.client import SurvivingClient
from quire.protocols.sequencing.failover.options import SurvivingOptions
from quire.protocols.sequencing.failover.process import SequencerProcess
from quire.protocols.sequencing.failover.register import Register

__all__ = ["Register", "SequencerProcess", "SurvivingClient", "SurvivingOptions"]
