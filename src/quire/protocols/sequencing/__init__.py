"""The sequencing service (Kindberg): many overlapping groups, several sequencers, three orders.

`sequencer` numbers the messages that are sent to its groups, `client` delivers them in order, `directory` knows where groups
are and which clients may join them. Read `sequencer` first: it says what the service promises and where it departs from its
source.
"""

from quire.protocols.sequencing.client import Client
from quire.protocols.sequencing.directory import Directory
from quire.protocols.sequencing.options import SequencingOptions
from quire.protocols.sequencing.sequencer import Sequencer

__all__ = ["Client", "Directory", "Sequencer", "SequencingOptions"]
