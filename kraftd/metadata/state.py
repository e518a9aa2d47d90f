"""The values of the metadata image: immutable, one class for each kind.

The image's setters replace a value as a whole, so holding, comparing and journalling it costs nothing. Node
ids are ints; ids of topics, directories and incarnations are 16 raw bytes.
"""

from __future__ import annotations

from msgspec import Struct

from kraftd.configdef.resources import BROKER_RESOURCE as BROKER_RESOURCE
from kraftd.configdef.resources import CLIENT_METRICS_RESOURCE as CLIENT_METRICS_RESOURCE
from kraftd.configdef.resources import GROUP_RESOURCE as GROUP_RESOURCE
from kraftd.configdef.resources import TOPIC_RESOURCE as TOPIC_RESOURCE
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.types import DIRECTORY_MIGRATING, Endpoint, uuid_text

NO_LEADER = -1
NO_LEADER_CHANGE = -2  # in a PartitionChangeRecord

# LeaderRecoveryState (KIP-704).
RECOVERED = 0
RECOVERING = 1
RECOVERY_UNCHANGED = -1  # in a PartitionChangeRecord

# KIP-858: until directories are assigned, every replica's directory is the reserved "migrating".
_MIGRATING = tuple((DIRECTORY_MIGRATING,) * count for count in range(16))


class PartitionState(Struct, frozen=True, gc=False):
    """A partition (KIP-631, KIP-858, KIP-966).  directories[i] is where replicas[i] lives; replicas[0]
    is preferred.
    """

    replicas: tuple[int, ...]
    directories: tuple[bytes, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_recovery_state: int = RECOVERED
    leader_epoch: int = 0
    partition_epoch: int = 0

    @property
    def has_preferred_leader(self) -> bool:
        return bool(self.replicas) and self.leader == self.replicas[0]

    @property
    def is_reassigning(self) -> bool:
        return bool(self.removing_replicas or self.adding_replicas)

    def hosts(self) -> tuple[int, ...]:
        """The replicas, then a leader or ISR members that are no replicas. Kafka may elect a replica that a
        reassignment has just removed in the same request.
        """
        replicas, leader = self.replicas, self.leader
        for member in self.isr:
            if member not in replicas:
                break
        else:
            if leader in replicas or leader == NO_LEADER:
                return replicas
        others = {*self.isr, leader}.difference(replicas, (NO_LEADER,))
        return (*replicas, *sorted(others))

    def directory(self, replica: int) -> bytes:
        """The directory id of a replica. Raises ValueError if the broker is no replica."""
        return self.directories[self.replicas.index(replica)]

    def merged(self, change: PartitionChangeRecord) -> PartitionState:
        """This partition after a change; fields that are None stay. Naming a leader, even the same, makes a
        new leader epoch; every change makes a new partition epoch. Raises ValueError if directories and
        replicas differ in number.
        """
        replicas, directories = self.replicas, self.directories
        if change.replicas is not None or change.directories is not None:
            replicas = replicas if change.replicas is None else change.replicas
            directories = directories if change.directories is None else change.directories
            directories = replica_directories(directories, replicas)
        leader, leader_epoch = self.leader, self.leader_epoch
        if change.leader != NO_LEADER_CHANGE:
            leader, leader_epoch = change.leader, leader_epoch + 1
        recovery = change.leader_recovery_state
        return PartitionState(
            replicas,
            directories,
            self.isr if change.isr is None else change.isr,
            self.removing_replicas if change.removing_replicas is None else change.removing_replicas,
            self.adding_replicas if change.adding_replicas is None else change.adding_replicas,
            self.elr if change.eligible_leader_replicas is None else change.eligible_leader_replicas,
            self.last_known_elr if change.last_known_elr is None else change.last_known_elr,
            leader,
            self.leader_recovery_state if recovery == RECOVERY_UNCHANGED else recovery,
            leader_epoch,
            self.partition_epoch + 1,
        )

    def __repr__(self) -> str:
        text = f"leader {self.leader} epoch {self.leader_epoch}, replicas {self.replicas}, isr {self.isr}"
        if self.is_reassigning:
            text += f", adding {self.adding_replicas}, removing {self.removing_replicas}"
        if self.elr or self.last_known_elr:
            text += f", elr {self.elr}, last known {self.last_known_elr}"
        if self.leader_recovery_state:
            text += ", recovering"
        return f"<Partition {text}, partition epoch {self.partition_epoch}>"


def replica_directories(directories: tuple[bytes, ...], replicas: tuple[int, ...]) -> tuple[bytes, ...]:
    """The directories of replicas from a record: all "migrating" if it names none, or only that.

    Raises ValueError if their number is not that of the replicas.
    """
    count = len(replicas)
    if len(directories) == count and DIRECTORY_MIGRATING not in directories:
        return directories
    if directories.count(DIRECTORY_MIGRATING) == len(directories):
        return _MIGRATING[count] if count < len(_MIGRATING) else (DIRECTORY_MIGRATING,) * count
    if len(directories) != count:
        raise ValueError(f"{len(directories)} directories for {count} replicas")
    return directories


class TopicState(Struct, gc=False):
    """A topic. The dict belongs to the image; only its setters change it."""

    id: bytes
    name: str
    partitions: dict[int, PartitionState]

    def __repr__(self) -> str:
        return f"<Topic {self.name} {uuid_text(self.id)}, {len(self.partitions)} partitions>"


class BrokerState(Struct, frozen=True, gc=False):
    """A registered broker.  epoch is the broker epoch; cordoned_directories is None until the broker has
    reported them.
    """

    id: int
    epoch: int
    incarnation_id: bytes
    listeners: tuple[Endpoint, ...] = ()
    features: dict[str, tuple[int, int]] = {}
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    is_migrating_zk: bool = False
    directories: tuple[bytes, ...] = ()  # sorted
    cordoned_directories: tuple[bytes, ...] | None = None

    @property
    def is_active(self) -> bool:
        """Return whether it is neither fenced nor in controlled shutdown: it may lead and join an ISR."""
        return not self.fenced and not self.in_controlled_shutdown

    def listener(self, name: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.listeners if endpoint.listener == name), None)

    def has_uncordoned_directory(self) -> bool:
        """Return whether a directory may be uncordoned: false only if all are known to be cordoned
        (KIP-1066).
        """
        if not self.directories or self.cordoned_directories is None:
            return True
        return any(directory not in self.cordoned_directories for directory in self.directories)

    def __repr__(self) -> str:
        state = "fenced" if self.fenced else "shutting down" if self.in_controlled_shutdown else "active"
        return f"<Broker {self.id} epoch {self.epoch} {state}, {len(self.directories)} directories>"


class ControllerState(Struct, frozen=True, gc=False):
    """A registered controller (KIP-919)."""

    id: int
    incarnation_id: bytes
    zk_migration_ready: bool = False
    listeners: tuple[Endpoint, ...] = ()
    features: dict[str, tuple[int, int]] = {}

    def listener(self, name: str) -> Endpoint | None:
        return next((endpoint for endpoint in self.listeners if endpoint.listener == name), None)

    def __repr__(self) -> str:
        return f"<Controller {self.id} incarnation {uuid_text(self.incarnation_id)}>"


class AclState(Struct, frozen=True, gc=False):
    """An access control entry; the numbers are Kafka's codes."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class ScramState(Struct, frozen=True, gc=False):
    """A user's SCRAM credential of one mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"<Scram credential, {self.iterations} iterations>"  # never the keys


class DelegationTokenState(Struct, frozen=True, gc=False):
    """A delegation token without its secret; the times are ms since the epoch."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    expiration_timestamp_ms: int


# A quota's entity: pairs of (entity type, name or None for the default), sorted by type.
QuotaEntity = tuple[tuple[str, str | None], ...]
# The kind and name of a configured resource: (2, topic), (4, broker id or "" for all), (16, subscription),
# (32, group).
ConfigResource = tuple[int, str]
