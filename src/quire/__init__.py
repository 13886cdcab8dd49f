"""Quire: ordered group communication for Python.

    quire.join(...)          a member of a live group
    quire.join_objects(...)  a member of a live group of objects that call each other
    quire.join_store(...)    a process of a live store of replicated keys, with transactions
    quire.connect(...)       a client of the sequencing service, in any number of groups
    quire.simulate(...)      a group in the seeded simulator
    quire.audit(...)         check the orders of a trace on Spark

Everything else that an application holds, compares or catches is here too; docs/api.md lists it. Each name is imported when
it is first used, so that `import quire` costs nothing and nobody needs Spark to multicast.
"""

from __future__ import annotations

from quire.lazy import imported_when_used

with imported_when_used(globals()):
    from quire.journal.errors import JournalCorrupt as JournalCorrupt
    from quire.live.common import Common as Common
    from quire.live.dynamic.deliveries import DeliveredRun as DeliveredRun
    from quire.live.dynamic.events import Blocked as Blocked
    from quire.live.dynamic.events import Excluded as Excluded
    from quire.live.dynamic.events import MemberExcluded as MemberExcluded
    from quire.live.dynamic.events import Restored as Restored
    from quire.live.dynamic.events import Unblocked as Unblocked
    from quire.live.dynamic.events import View as View
    from quire.live.dynamic.events import ViewMessage as ViewMessage
    from quire.live.dynamic.group import DynamicGroup as DynamicGroup
    from quire.live.errors import GroupClosed as GroupClosed
    from quire.live.errors import GroupFailed as GroupFailed
    from quire.live.errors import MemberUnreachable as MemberUnreachable
    from quire.live.errors import NotDelivered as NotDelivered
    from quire.live.errors import PeerMisbehaved as PeerMisbehaved
    from quire.live.errors import StaleEpoch as StaleEpoch
    from quire.live.events import Event as Event
    from quire.live.groups.group import Group as Group
    from quire.live.held import Held as Held
    from quire.live.joining import join as join
    from quire.live.network_options import Certificates as Certificates
    from quire.live.observing.status import HeldBack as HeldBack
    from quire.live.observing.status import Status as Status
    from quire.live.services.objects import ObjectGroup as ObjectGroup
    from quire.live.services.objects import join_objects as join_objects
    from quire.live.services.sequencers import Connected as Connected
    from quire.live.services.sequencers import connect as connect
    from quire.live.services.sequencers import serve as serve
    from quire.live.services.session import GroupMessage as GroupMessage
    from quire.live.services.session import Membership as Membership
    from quire.live.services.surviving.server import SurvivingServer as SurvivingServer
    from quire.live.services.transactions import StoreMember as StoreMember
    from quire.live.services.transactions import join_store as join_store
    from quire.live.services.visiting import HubHost as HubHost
    from quire.model.errors import BadInput as BadInput
    from quire.model.errors import CannotWrite as CannotWrite
    from quire.model.errors import NoQuorum as NoQuorum
    from quire.model.errors import OutcomeUnknown as OutcomeUnknown
    from quire.model.errors import QuireError as QuireError
    from quire.model.errors import SparkFailed as SparkFailed
    from quire.model.errors import TooLarge as TooLarge
    from quire.model.messages import Message as Message
    from quire.model.messages import MessageId as MessageId
    from quire.model.messages import Run as Run
    from quire.model.orders import Guarantee as Guarantee
    from quire.objects.call import Call as Call
    from quire.objects.call import Pending as Pending
    from quire.objects.declare import Object as Object
    from quire.objects.declare import operation as operation
    from quire.objects.placing import Placement as Placement
    from quire.objects.placing import place as place
    from quire.pipeline.auditing.auditor import audit as audit
    from quire.pipeline.auditing.verdicts import Audit as Audit
    from quire.pipeline.auditing.verdicts import Check as Check
    from quire.pipeline.auditing.verdicts import Verdict as Verdict
    from quire.pipeline.auditing.verdicts import Witness as Witness
    from quire.pipeline.causality.cycles import Contradiction as Contradiction
    from quire.protocols.clusters.errors import DuplicateSite as DuplicateSite
    from quire.protocols.clusters.errors import GapTimeout as GapTimeout
    from quire.protocols.clusters.errors import InvalidHierarchy as InvalidHierarchy
    from quire.protocols.clusters.errors import NotInCluster as NotInCluster
    from quire.protocols.contract import Deliver as Deliver
    from quire.protocols.objects.errors import CallAborted as CallAborted
    from quire.protocols.objects.errors import CallDied as CallDied
    from quire.protocols.objects.errors import CallFailed as CallFailed
    from quire.protocols.objects.errors import EmptyDestination as EmptyDestination
    from quire.protocols.objects.errors import HostLost as HostLost
    from quire.protocols.objects.errors import InstanceEnded as InstanceEnded
    from quire.protocols.objects.errors import MayNotCall as MayNotCall
    from quire.protocols.objects.errors import UnknownObject as UnknownObject
    from quire.protocols.objects.errors import UnknownOperation as UnknownOperation
    from quire.protocols.sequencing.errors import AlreadyMember as AlreadyMember
    from quire.protocols.sequencing.errors import Busy as Busy
    from quire.protocols.sequencing.errors import Evicted as Evicted
    from quire.protocols.sequencing.errors import GapUnrecoverable as GapUnrecoverable
    from quire.protocols.sequencing.errors import GroupLost as GroupLost
    from quire.protocols.sequencing.errors import NoSuchGroup as NoSuchGroup
    from quire.protocols.sequencing.errors import NotMember as NotMember
    from quire.protocols.sequencing.errors import TooManyGroups as TooManyGroups
    from quire.protocols.sequencing.errors import UnitUnavailable as UnitUnavailable
    from quire.protocols.transactions.errors import CommitUnknown as CommitUnknown
    from quire.protocols.transactions.errors import CoordinatorLost as CoordinatorLost
    from quire.protocols.transactions.errors import NoReplicaQuorum as NoReplicaQuorum
    from quire.protocols.transactions.errors import Obsolete as Obsolete
    from quire.protocols.transactions.errors import ReadChanged as ReadChanged
    from quire.protocols.transactions.errors import ReadOnlyReplicaMissing as ReadOnlyReplicaMissing
    from quire.protocols.transactions.errors import ReplicaOutdated as ReplicaOutdated
    from quire.protocols.transactions.errors import RetryLimit as RetryLimit
    from quire.protocols.transactions.errors import StaleVersion as StaleVersion
    from quire.protocols.transactions.errors import TransactionError as TransactionError
    from quire.protocols.transactions.errors import TxAborted as TxAborted
    from quire.protocols.transactions.errors import TxEnded as TxEnded
    from quire.protocols.transactions.errors import UnknownKey as UnknownKey
    from quire.protocols.transactions.timestamps import Timestamp as Timestamp
    from quire.replicated.base import Replicated as Replicated
    from quire.replicated.calls import command as command
    from quire.replicated.calls import query as query
    from quire.replicated.containers import ReplicatedCounter as ReplicatedCounter
    from quire.replicated.containers import ReplicatedDict as ReplicatedDict
    from quire.replicated.containers import ReplicatedQueue as ReplicatedQueue
    from quire.replicated.home import Context as Context
    from quire.replicated.home import State as State
    from quire.replicated.leases import Election as Election
    from quire.replicated.leases import Lease as Lease
    from quire.replicated.leases import LeaseLost as LeaseLost
    from quire.replicated.leases import Lock as Lock
    from quire.simulation.config import FaultConfig as FaultConfig
    from quire.simulation.config import NetworkConfig as NetworkConfig
    from quire.simulation.config import SimulationConfig as SimulationConfig
    from quire.simulation.config import WorkloadConfig as WorkloadConfig
    from quire.simulation.runs import SimulationResult as SimulationResult
    from quire.simulation.simulate import simulate as simulate
    from quire.trace.relay_load import RelayLoad as RelayLoad
    from quire.transactions.codecs import JSON as JSON
    from quire.transactions.codecs import Codec as Codec
    from quire.transactions.store import Counts as Counts
    from quire.transactions.store import Retries as Retries
    from quire.transactions.store import Store as Store
    from quire.transactions.store import Transaction as Transaction
