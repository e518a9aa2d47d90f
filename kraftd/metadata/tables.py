"""The tables of the metadata image: the state, its indexes, and the undo journal behind every change.

``replay_*.py`` defines what a record means and changes the tables only through the setters below.
``image.py`` adds replay and reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kraftd.metadata import journal as j
from kraftd.metadata.changed_keys import changed_keys
from kraftd.metadata.metadata_version import METADATA_VERSION, MINIMUM_VERSION
from kraftd.metadata.partition_index import (
    SHARED_INTS,
    SHARED_LIMIT,
    CountedPartitionSet,
    HostedPartitions,
    PartitionSet,
    TopicPartition,
)
from kraftd.metadata.replica_changes import NewestChanges, ReplicaChange, ReplicaChanges
from kraftd.metadata.shared_values import EqualPartitions, KnownPartitions, SharedValues
from kraftd.metadata.state import (
    AclState,
    BrokerState,
    ConfigResource,
    ControllerState,
    DelegationTokenState,
    PartitionState,
    QuotaEntity,
    ScramState,
    TopicState,
)
from kraftd.metadata.topic_names import TopicNames

_MAX_ENTRIES_FORGOTTEN_PER_CALL = 8_000  # about 2 ms
_MAX_CHANGES_SETTLED_PER_CALL = 4_000  # about 2 ms
_MOST_OFFSETS = 1 << 56  # between the versions of the content before and after something was undone


class Tables:
    """The metadata of a cluster as of one offset: offset and epoch are those of the last applied record (-1
    at first).
    """

    def __init__(self) -> None:
        self.offset = -1
        self.epoch = -1
        self.idle_count = 0  # of the applied records that changed nothing
        self.undo_count = 0  # never undone
        self.features: dict[str, int] = {}  # finalized levels; kraft.version is the quorum's, not here
        self.brokers: dict[int, BrokerState] = {}
        self.registration_offsets: dict[
            int, int
        ] = {}  # of each broker's last RegisterBrokerRecord; not in snapshots
        self.broker_offsets: dict[int, int] = {}  # of the last record of any kind about a registered broker
        self.controllers: dict[int, ControllerState] = {}
        self.topics: dict[bytes, TopicState] = {}  # by id
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.acls: dict[bytes, AclState] = {}  # by id
        self.scram: dict[tuple[int, str], ScramState] = {}  # by (mechanism, user)
        self.delegation_tokens: dict[str, DelegationTokenState] = {}  # by token id
        self.next_producer_id = -1  # before the first block
        self.transaction_offset: int | None = None  # where the open metadata transaction began (KIP-868)
        self.partition_count = 0
        # For metrics, counted since the load was complete; never undone.
        self.unclean_elections = 0
        self.elections_from_elr = 0
        self._names = TopicNames()
        self._acl_counts: dict[AclState, int] = {}
        # For an authorizer, if one follows the image: each change of an ACL with its offset, the value
        # before, and the value now.
        self.acl_changes: list[tuple[int, AclState | None, AclState | None]] | None = None
        self.replica_changes: ReplicaChanges | None = None  # for the broker of this process, if there is one
        self._hosted: dict[int, HostedPartitions] = {}
        self._led_count: dict[int, int] = {}
        self._leaderless = CountedPartitionSet()
        self._not_preferred = CountedPartitionSet()
        self._reassigning = PartitionSet()
        self._with_elr = PartitionSet()
        self._journal: j.Journal | None = None
        self._marked = False  # true on a leader, whose records may be undone
        self._ended_transactions: list[tuple[int, int]] = []  # (began, ended): the end may still be undone
        self.shared_values = SharedValues()
        self.known_partitions = KnownPartitions()
        self.equal_partitions = EqualPartitions()
        # By id(partition): the partition, its new ISR, and the result, which equal partitions share.
        self.known_changes: dict[int, tuple[PartitionState, tuple[int, ...], PartitionState]] = {}

    @property
    def metadata_version(self) -> int:
        """The finalized level of metadata.version; the lowest supported one until a record has set it."""
        return self.features.get(METADATA_VERSION, MINIMUM_VERSION)

    def topic_named(self, name: str) -> TopicState | None:
        topic_id = self._names.ids.get(name)
        return None if topic_id is None else self.topics[topic_id]

    def partitions_with_any_elr(self) -> Iterator[TopicPartition]:
        """Partitions with an ELR or a last known ELR."""
        return iter(self._with_elr)

    # Undoing records

    def mark(self) -> None:
        """Keep a journal from the next record on, because a leader's records may be undone."""
        self._marked = True
        self._journal = self._journal or j.Journal()

    def commit(self, offset: int) -> None:
        """Note that records up to the offset are committed and will not be undone; see ``forget_some``."""
        if self._journal is None:
            return
        self._ended_transactions = [both for both in self._ended_transactions if both[1] > offset]
        # An abort undoes committed records, and the uncommitted end of a transaction may itself be undone.
        if self._ended_transactions:
            offset = min(offset, self._ended_transactions[0][0] - 1)
        elif self.transaction_offset is not None:
            offset = min(offset, self.transaction_offset - 1)
        self._journal.settle(offset)
        self._journal.forget(_MAX_ENTRIES_FORGOTTEN_PER_CALL)
        if self.replica_changes is not None:
            self.replica_changes.settle(offset + 1, _MAX_CHANGES_SETTLED_PER_CALL)

    def forget_some(self) -> bool:
        """Forget a part of what committed records have replaced; returns whether there is more."""
        return self._journal is not None and self._journal.forget(_MAX_ENTRIES_FORGOTTEN_PER_CALL)

    def take_replica_changes(self, committed_end: int, most: int) -> list[ReplicaChange]:
        """Remove and return up to `most` changes for this process's broker, of records below an offset, which
        are committed. What belongs to a transaction waits until its end is committed too.
        """
        if self.replica_changes is None:
            return []
        return self.replica_changes.take(self._settled_end(committed_end), most)

    def settle_replica_changes(self, committed_end: int) -> bool:
        """Account for some changes that are final; returns whether there are more."""
        changes, most = self.replica_changes, _MAX_CHANGES_SETTLED_PER_CALL
        return changes is not None and changes.settle(self._settled_end(committed_end), most)

    def take_newest_changes(self) -> NewestChanges:
        """Remove and return the newest change of each partition as of the last `settle_replica_changes`,
        before `take_replica_changes` has returned any.
        """
        return NewestChanges() if self.replica_changes is None else self.replica_changes.take_newest()

    def take_removed_topics(self, committed_end: int) -> list[tuple[str, bytes]]:
        """Remove and return the topics that are gone, by name and id, as `take_replica_changes` does."""
        if self.replica_changes is None:
            return []
        return self.replica_changes.take_removed_topics(self._settled_end(committed_end))

    def _settled_end(self, committed_end: int) -> int:
        """The end of the records that neither an abort nor a new leader undoes."""
        ended = [began for began, end in self._ended_transactions if end >= committed_end]
        open_transaction = () if self.transaction_offset is None else (self.transaction_offset,)
        bounds: tuple[int, ...] = (committed_end, *ended, *open_transaction)
        return min(bounds)

    def forget_elections(self) -> None:
        """Reset the counts of elections, which are to cover the time since the load."""
        self.unclean_elections = self.elections_from_elr = 0

    def undo_to(self, offset: int) -> None:
        """Undo the records after an offset, newest first, and stop journaling (leadership was lost)."""
        journal, replica_changes = self._journal, self.replica_changes
        self.undo_count += 1
        self.replica_changes = None  # what is undone is forgotten, and the undoing no change
        kept = [change for change in self.acl_changes or () if change[0] <= offset]
        if journal is not None:
            self._journal = None  # undoing is not journaled itself
            while journal.entries and journal.entries[-1][0] > offset:
                entry = journal.entries.pop()
                self._put_back(entry)
                if entry[1] == j.FOLLOWING:
                    self.offset = entry[0] - 1
            self._journal = journal
        if self.acl_changes is not None:
            self.acl_changes = kept
        if replica_changes is not None:
            replica_changes.undo_to(offset)
            self.replica_changes = replica_changes
        self._marked = False
        self._ended_transactions.clear()
        self._settle()

    @property
    def uncommitted_change_count(self) -> int:
        return len(self._journal.entries) if self._journal is not None else 0

    @property
    def changed_key_count(self) -> int:
        """How many records of a snapshot made at the mark have been modified or deleted since, each once."""
        entries = self._journal.entries if self._journal is not None else ()
        return len(changed_keys(entries, (self.registration_offsets, self.broker_offsets)))

    @property
    def in_transaction(self) -> bool:
        return self.transaction_offset is not None

    def features_before_transaction(self) -> Mapping[str, int]:
        """The finalized features as if the open transaction were aborted; without one, the current ones."""
        features = dict(self.features)
        if self._journal is not None and self.transaction_offset is not None:
            for offset, _, place, name, before in reversed(self._journal.entries):
                if offset >= self.transaction_offset and place is self.features:
                    if before is j.ABSENT:
                        features.pop(name, None)
                    else:
                        features[name] = before
        return features

    @property
    def content_version(self) -> int:
        """A number that changes with the content: a controller writes a record without one twice a second.

        Another record may follow at the offset of one that was undone: the number is another one then.
        """
        return self.undo_count * _MOST_OFFSETS + self.offset - self.idle_count

    def begin_transaction(self) -> None:
        self._journal = self._journal or j.Journal()
        self.set_field("transaction_offset", self.offset)

    def end_transaction(self) -> None:
        self._note_transaction_end()
        self.set_field("transaction_offset", None)
        self._settle()

    def abort_transaction(self) -> None:
        """Undo what the open transaction applied; with a mark, this undo can be undone too."""
        began = self.transaction_offset
        self._note_transaction_end()
        assert self._journal is not None and began is not None
        changes = [entry for entry in self._journal.entries if entry[0] >= began]
        for entry in reversed(changes):
            if entry[1] != j.FIELD or entry[3] not in ("offset", "epoch"):
                self._put_back(entry)
        self._settle()

    def _note_transaction_end(self) -> None:
        if self._marked and self.transaction_offset is not None:
            self._ended_transactions.append((self.transaction_offset, self.offset))

    def _settle(self) -> None:
        if not self._marked and self.transaction_offset is None:
            self._journal = None

    def _put_back(self, entry: j.Entry) -> None:
        _, kind, place, key, before = entry
        if kind in (j.PARTITION, j.FOLLOWING):
            self.set_partition(place, key, before)
        elif kind == j.TABLE:
            self.put(place, key, before)
        elif kind == j.TOPIC:
            self.set_topic(key, before)
        else:
            self.set_field(key, before)

    # Setters: the only places that change the image

    def put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Set a key of one of the plain tables; ABSENT removes it."""
        if self._journal is not None:
            self._journal.entries.append((self.offset, j.TABLE, table, key, table.get(key, j.ABSENT)))
        if table is self.acls:
            before, after = self.acls.get(key), None if value is j.ABSENT else value
            self._count_acl(before, -1)
            self._count_acl(after, 1)
            if self.acl_changes is not None:
                self.acl_changes.append((self.offset, before, after))
        if value is j.ABSENT:
            table.pop(key, None)
        else:
            table[key] = value

    def _count_acl(self, acl: AclState | None, change: int) -> None:
        """Count equal ACLs, which may have several ids."""
        if acl is not None:
            count = self._acl_counts.get(acl, 0) + change
            if count:
                self._acl_counts[acl] = count
            else:
                del self._acl_counts[acl]

    def set_field(self, name: str, value: Any) -> None:
        """Set a plain field of the image."""
        if self._journal is not None:
            self._journal.entries.append((self.offset, j.FIELD, None, name, getattr(self, name)))
        setattr(self, name, value)

    def set_topic(self, topic_id: bytes, topic: TopicState | None) -> None:
        """Add a topic without partitions, or remove one whose partitions are gone."""
        before = self.topics.get(topic_id)
        if self._journal is not None:
            self._journal.entries.append((self.offset, j.TOPIC, None, topic_id, before))
        known = topic or before
        if self.replica_changes is not None and known is not None:
            self.replica_changes.note_topic(self.offset, topic_id, known.name, is_removed=topic is None)
        if before is not None:
            del self.topics[topic_id]
            self._names.remove(before.name)
        if topic is not None:
            self.topics[topic_id] = topic
            self._names.add(topic.name, topic_id)

    def set_partition(self, topic: TopicState, index: int, state: PartitionState | None) -> None:
        """Set or remove (None) a partition and bring every index up to date."""
        before = topic.partitions.get(index)
        if 0 <= index < SHARED_LIMIT:
            index = SHARED_INTS[index]
        if state is not None:
            state = self.equal_partitions.one(state)
        if self._journal is not None:
            self._journal.entries.append((self.offset, j.PARTITION, topic, index, before))
        topic_id = topic.id
        if self.replica_changes is not None:
            is_final = self._journal is None
            self.replica_changes.note(self.offset, topic_id, topic.name, index, before, state, is_final)
        if state is None:
            topic.partitions.pop(index, None)
        else:
            topic.partitions[index] = state
        if before is None:
            if state is None:
                return
            self.partition_count += 1
            self._host(topic_id, index, state.hosts())
            self._count_led(state.leader, 1)
        elif state is None:
            self.partition_count -= 1
            for replica in before.hosts():
                self._hosted[replica].discard(topic_id, index)
            self._count_led(before.leader, -1)
        else:
            hosted, hosts = before.hosts(), state.hosts()
            if hosted is not hosts and hosted != hosts:
                for replica in hosted:
                    self._hosted[replica].discard(topic_id, index)
                self._host(topic_id, index, hosts)
            if before.leader != state.leader:
                self._count_led(before.leader, -1)
                self._count_led(state.leader, 1)
        # The sparse indexes: most partitions are in none of them, before and after.
        if state is None:
            for partitions in (self._leaderless, self._not_preferred, self._reassigning, self._with_elr):
                partitions.discard(topic_id, index)
            return
        leader, replicas = state.leader, state.replicas
        if leader < 0 or topic_id in self._leaderless.masks:
            _set(self._leaderless, topic_id, index, leader < 0)
        led_by_another = bool(replicas) and replicas[0] != leader
        if led_by_another or topic_id in self._not_preferred.masks:
            _set(self._not_preferred, topic_id, index, led_by_another)
        if state.adding_replicas or state.removing_replicas or topic_id in self._reassigning.masks:
            _set(self._reassigning, topic_id, index, bool(state.adding_replicas or state.removing_replicas))
        if state.elr or state.last_known_elr or topic_id in self._with_elr.masks:
            _set(self._with_elr, topic_id, index, bool(state.elr or state.last_known_elr))

    def note_run(self, topic_id: bytes, count: int, hosts: dict[int, int], led: dict[int, int]) -> None:
        """Update the indexes after new partitions of a topic. hosts maps a broker to a mask of partition
        indexes, led a leader to their number.
        """
        self.partition_count += count
        hosted = self._hosted
        for broker_id, mask in hosts.items():
            partitions = hosted.get(broker_id)
            if partitions is None:
                partitions = hosted[broker_id] = HostedPartitions()
            partitions.add_mask(topic_id, mask)
        counts = self._led_count
        for leader, more in led.items():
            counts[leader] = counts.get(leader, 0) + more

    def remove_partitions(self, topic: TopicState) -> None:
        """Remove all partitions of a topic, as ``set_partition`` of each to None would."""
        entries = None if self._journal is None else self._journal.entries
        masks: dict[int, int] = {}
        led: dict[int, int] = {}
        partitions = topic.partitions
        for index, state in partitions.items():
            if entries is not None:
                entries.append((self.offset, j.PARTITION, topic, index, state))
            if self.replica_changes is not None:
                is_final = entries is None
                self.replica_changes.note(self.offset, topic.id, topic.name, index, state, None, is_final)
            bit = 1 << index
            for replica in state.hosts():
                masks[replica] = masks.get(replica, 0) | bit
            leader = state.leader
            if leader >= 0:
                led[leader] = led.get(leader, 0) + 1
        count = len(partitions)
        partitions.clear()
        self._note_removed(topic.id, count, masks, led)

    def _note_removed(self, topic_id: bytes, count: int, hosts: dict[int, int], led: dict[int, int]) -> None:
        """Update the indexes after all partitions of a topic were removed; arguments as in ``note_run``."""
        self.partition_count -= count
        for broker_id, mask in hosts.items():
            self._hosted[broker_id].discard_mask(topic_id, mask)
        for leader, fewer in led.items():
            self._count_led(leader, -fewer)
        for partitions in (self._leaderless, self._not_preferred, self._reassigning, self._with_elr):
            partitions.discard_topic(topic_id)

    def _host(self, topic_id: bytes, index: int, replicas: tuple[int, ...]) -> None:
        hosted = self._hosted
        for replica in replicas:
            partitions = hosted.get(replica)
            if partitions is None:
                partitions = hosted[replica] = HostedPartitions()
            partitions.add(topic_id, index)

    def _count_led(self, leader: int, change: int) -> None:
        if leader >= 0:
            count = self._led_count.get(leader, 0) + change
            if count:
                self._led_count[leader] = count
            else:
                del self._led_count[leader]


def _set(partitions: PartitionSet, topic_id: bytes, index: int, member: bool) -> None:
    if member:
        partitions.add(topic_id, index)
    elif topic_id in partitions.masks:
        partitions.discard(topic_id, index)
