"""Random requests about topics, configs, groups and clients."""

from __future__ import annotations

from random import Random

from kraftd.messages import (
    alter_configs_request,
    create_partitions_request,
    create_topics_request,
    delete_topics_request,
    describe_configs_request,
    describe_topic_partitions_request,
    incremental_alter_configs_request,
)
from kraftd.messages.api_versions_request import ApiVersionsRequest
from kraftd.messages.create_acls_request import AclCreation, CreateAclsRequest
from kraftd.messages.delete_groups_request import DeleteGroupsRequest
from kraftd.messages.describe_acls_request import DescribeAclsRequest
from kraftd.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from kraftd.messages.describe_cluster_request import DescribeClusterRequest
from kraftd.messages.describe_groups_request import DescribeGroupsRequest
from kraftd.messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from kraftd.messages.elect_leaders_request import ElectLeadersRequest
from kraftd.messages.find_coordinator_request import FindCoordinatorRequest
from kraftd.messages.heartbeat_request import HeartbeatRequest
from kraftd.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kraftd.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kraftd.messages.list_config_resources_request import ListConfigResourcesRequest
from kraftd.messages.list_groups_request import ListGroupsRequest
from kraftd.messages.list_partition_reassignments_request import ListPartitionReassignmentsRequest
from kraftd.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kraftd.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraftd.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraftd.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kraftd.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tests.groups.requests import subscription
from tests.kafka.broker.cluster_state import MISSING, STRANGE_ID, Drawn, Randomness, World

LONG_MS = 600_000
GROUPS = 4
KEYS = ("retention.ms", "min.insync.replicas", "cleanup.policy", "no.such", "compression.type")
BROKER_KEYS = ("log.retention.ms", "node.id", "num.io.threads", "advertised.listeners", "broker.id")
BROKER_CHANGES: dict[str, tuple[str | None, ...]] = {
    "background.threads": ("5", "20", "12", "0", "100", "x", None),
    "log.cleaner.threads": ("1", "2", "9", ""),
    "log.cleaner.backoff.ms": ("3500000", "-1", "9999999999999999999"),
    "leader.replication.throttled.rate": ("1000", "x", None),
    "log.local.retention.bytes": ("-2", "-1", "5"),
    "log.segment.bytes": ("1", "abc", "1073741824"),
    "listener.name.users.max.connections": ("50", "x"),
    "listener.name.users.num.network.threads": ("9", "0"),
    "ssl.keystore.location": ("/none",),
    "listener.name.users.no.such": ("1",),
    "listener.name.users.group.max.size": ("x", "100"),
    "listener.name.users.plain.connections.max.reauth.ms": ("x", "0"),
    "listener.name.users.principal.builder.class": ("com.example.Builder", None),
    "listener.name.none.num.network.threads": ("9", "0"),
    "listener.name.controller.max.connections": ("0", "50"),
    "ssl.engine.factory.class": ("com.example.Factory", ""),
    "metric.reporters": ("", "com.example.Reporter", None),
    "node.id": ("5",),
    "no.such": ("x", None),
}


class OtherRequests(Randomness):
    """Draws requests of everything but records."""

    def __init__(self, random: Random, world: World) -> None:
        super().__init__(random, world)
        self.kinds = {
            self.metadata: 8,
            self.describe_topic_partitions: 3,
            self.describe_configs: 3,
            self.alter_configs: 2,
            self.alter_all_configs: 1,
            self.create_topics: 2,
            self.delete_topics: 1,
            self.create_partitions: 1,
            self.describe_cluster: 2,
            self.api_versions: 1,
            self.list_configs: 1,
            self.acls: 1,
            self.other_reads: 2,
            self.find_coordinator: 4,
            self.join: 5,
            self.sync: 4,
            self.heartbeat: 2,
            self.leave: 1,
            self.commit: 5,
            self.fetch_offsets: 4,
            self.delete_offsets: 1,
            self.describe_groups: 3,
            self.list_groups: 2,
            self.delete_groups: 1,
        }

    # Topics

    def new_topic(self) -> str:
        return f"{self.world.prefix}{self.one('xyz')}"

    def metadata(self) -> Drawn:
        version = self.version(3)
        topics = None
        if self.rarely(0.8):
            topics = []
            by_id = version >= 12 and self.rarely(0.4)
            for name in {self.topic() for _ in range(self.one((0, 1, 2)))}:
                id = self.world.topic_ids.get(name, STRANGE_ID) if by_id else bytes(16)
                topics.append(MetadataRequestTopic(id, None if by_id else name))
        if version == 0 and topics is None:
            topics = []
        # Versions before 4 create what is missing.
        creates = version < 4 or self.rarely(0.3)
        if creates and topics:
            topics = [topic for topic in topics if topic.name != "__consumer_offsets"]
        flags = (version <= 10 and version >= 8 and self.rarely(0.4), version >= 8 and self.rarely(0.4))
        return MetadataRequest(topics, creates, *flags), version

    def describe_topic_partitions(self) -> Drawn:
        m = describe_topic_partitions_request
        names = {self.topic() for _ in range(self.one((0, 1, 3)))} - {""}
        topics = [m.TopicRequest(name) for name in names]
        cursor = m.Cursor(self.topic(), self.one((0, 1, 5, -1))) if self.rarely(0.3) else None
        return m.DescribeTopicPartitionsRequest(topics, self.one((2000, 1, 2, 3, 0, -1)), cursor), 0

    def resource(self) -> tuple[int, str]:
        return self.one(
            ((2, self.topic()), (2, self.topic()), (4, "1"), (4, ""), (4, "2"), (32, "g"), (16, "m"))
        )

    def describe_configs(self) -> Drawn:
        m = describe_configs_request
        resources = []
        for type, name in {self.resource() for _ in range(self.one((0, 1, 2)))}:
            keys = None if self.rarely(0.4) else tuple({self.one(KEYS + BROKER_KEYS) for _ in range(3)})
            resources.append(m.DescribeConfigsResource(type, name, keys))
        return m.DescribeConfigsRequest(resources, self.rarely(0.5), False), self.version(32)

    def alter_configs(self) -> Drawn:
        m = incremental_alter_configs_request
        name, value = self.one(
            (
                ("max.message.bytes", "2000"),
                ("max.message.bytes", "-5"),
                ("message.timestamp.type", "CreateTime"),
                ("retention.bytes", "123456789"),
                ("no.such", "x"),
            )
        )
        topic = self.new_topic() if self.rarely(0.6) else self.topic()
        if topic in ("append", "limits", "compact") or topic.startswith("codec"):
            topic = "wide"
        changes = [m.AlterableConfig(name, self.one((0, 0, 1)), value)]
        resources = [m.AlterConfigsResource(2, topic, changes)]
        if self.rarely(0.5):
            of_brokers = [self.broker_change() for _ in range(self.one((1, 1, 2)))]
            resources = [*of_brokers, *(resources if self.rarely(0.3) else ())]
        return m.IncrementalAlterConfigsRequest(resources, self.rarely(0.2)), self.version(44)

    def broker_change(self) -> incremental_alter_configs_request.AlterConfigsResource:
        """Changes of a broker's configs, or of all brokers': most are refused, none changes an answer."""
        m = incremental_alter_configs_request
        changes = []
        for key in {self.one(tuple(BROKER_CHANGES)) for _ in range(self.one((1, 1, 2)))}:
            value = self.one(BROKER_CHANGES[key])
            changes.append(m.AlterableConfig(key, self.one((0, 0, 0, 1, 2, 3, 9)), value))
        return m.AlterConfigsResource(4, self.one(("1", "1", "", "", "2", "x", "-1")), changes)

    def alter_all_configs(self) -> Drawn:
        """The configs of a broker, all of them at once."""
        m = alter_configs_request
        drawn = self.broker_change()
        changes = [m.AlterableConfig(one.name, one.value) for one in drawn.configs]
        resources = [m.AlterConfigsResource(4, drawn.resource_name, changes)]
        return m.AlterConfigsRequest(resources, self.rarely(0.2)), self.version(33)

    def create_topics(self) -> Drawn:
        m = create_topics_request
        name = self.topic() if self.rarely(0.15) else self.new_topic()
        version = self.version(19)
        shape = self.one(((1, 1), (2, 1), (3, 1), (2, 2), (0, 1)))
        if version >= 4 and self.rarely(0.3):
            shape = (-1, -1)
        topic = m.CreatableTopic(name, *shape)
        if self.rarely(0.3):
            topic.configs = [
                m.CreatableTopicConfig(self.one(KEYS), self.one(("1", "delete", "x", "uncompressed")))
            ]
        return m.CreateTopicsRequest([topic], 30_000, self.rarely(0.15)), version

    def delete_topics(self) -> Drawn:
        m = delete_topics_request
        name, version = self.new_topic(), self.version(20)
        if self.rarely(0.2):
            name = self.one((MISSING, "", "a b"))
        if version < 6:
            return m.DeleteTopicsRequest([], (name,), 30_000), version
        id = self.world.topic_ids.get(name)
        state = m.DeleteTopicState(None, id) if id and self.rarely(0.5) else m.DeleteTopicState(name)
        return m.DeleteTopicsRequest([state], (), 30_000), version

    def create_partitions(self) -> Drawn:
        m = create_partitions_request
        name = self.new_topic() if not self.rarely(0.2) else self.topic()
        topics = [m.CreatePartitionsTopic(name, self.one((1, 2, 3, 4, 0)), None)]
        return m.CreatePartitionsRequest(topics, 30_000, self.rarely(0.2)), self.version(37)

    def describe_cluster(self) -> Drawn:
        version = self.version(60)
        request = DescribeClusterRequest(
            self.rarely(0.4),
            self.one((1, 1, 1, 2, 0)) if version >= 1 else 1,
            version >= 2 and self.rarely(0.5),
        )
        return request, version

    def api_versions(self) -> Drawn:
        names = self.one((("a", "1"), ("", "1"), ("a b", "1"), ("a", "")))
        return ApiVersionsRequest(*names), self.version(18)

    def list_configs(self) -> Drawn:
        version = self.version(74)
        types = self.one(((), (2,), (4,), (2, 4), (16,), (32,), (99,))) if version else ()
        return ListConfigResourcesRequest(types), version

    def acls(self) -> Drawn:
        if self.rarely(0.5):
            return DescribeAclsRequest(1, None, 1, None, None, 1, 1), self.version(29)
        row = AclCreation(2, f"{self.world.prefix}acl", 3, "User:carol", "*", self.one((3, 4, 8)), 3)
        return CreateAclsRequest([row]), self.version(30)

    def other_reads(self) -> Drawn:
        return self.one(
            (
                lambda: (DescribeClientQuotasRequest([], self.rarely(0.5)), self.version(48)),
                lambda: (DescribeUserScramCredentialsRequest([]), 0),
                lambda: (ListPartitionReassignmentsRequest(5000, None), 0),
                lambda: (ElectLeadersRequest(0, None, 5000), self.version(43)),
            )
        )()

    # Groups

    def group(self) -> str:
        if self.rarely(0.04):
            return ""
        return f"{self.world.prefix}g{self.random.randrange(GROUPS)}"

    def member(self, group: str) -> tuple[str, int]:
        member, generation = self.world.members.get(group, ("", -1))
        if self.rarely():
            member = self.one(("", "stranger"))
        return member, self.near(generation, 0.06)

    def find_coordinator(self) -> Drawn:
        version = self.version(10)
        kind = self.one((0, 0, 0, 0, 9, 2)) if version >= 1 else 0
        if version < 4:
            return FindCoordinatorRequest(self.group(), kind), version
        return FindCoordinatorRequest(
            "", kind, tuple(self.group() for _ in range(self.one((0, 1, 2))))
        ), version

    def join(self) -> Drawn:
        group = self.group()
        version = self.version(11)
        member, _ = self.member(group)
        protocols = [JoinGroupRequestProtocol("range", subscription("plain"))]
        if self.rarely(0.06):
            protocols = self.one(([], [JoinGroupRequestProtocol("other", b"\0")]))
        session_ms = self.one((100, 2_000_000)) if self.rarely(0.04) else LONG_MS
        if member == "" and group in self.world.members and not self.rarely(0.3):
            member = self.world.members[group][0]
        elif member == "" and group in self.world.members:
            return self.heartbeat()  # a second member would wait for the first
        return JoinGroupRequest(group, session_ms, LONG_MS, member, None, "consumer", protocols), version

    def sync(self) -> Drawn:
        group = self.group()
        member, generation = self.member(group)
        version = self.version(14)
        kind = ("consumer", "range") if version >= 5 else (None, None)
        rows = [SyncGroupRequestAssignment(member, f"for {member and 'it'}".encode())]
        return SyncGroupRequest(group, generation, member, None, *kind, rows), version

    def heartbeat(self) -> Drawn:
        group = self.group()
        member, generation = self.member(group)
        return HeartbeatRequest(group, generation, member), self.version(12)

    def leave(self) -> Drawn:
        group = self.group()
        version = self.version(13)
        member, _ = self.member(group)
        if version < 3:
            return LeaveGroupRequest(group, member), version
        return LeaveGroupRequest(group, members=[MemberIdentity(member)]), version

    def commit(self) -> Drawn:
        group = self.group()
        version = self.version(8)
        member, generation = self.member(group)
        if member == "" or self.rarely():
            member, generation = "", -1
        topics = []
        for name in {self.topic() for _ in range(2)}:
            rows = [
                OffsetCommitRequestPartition(
                    index, self.random.randrange(99), -1, self.one(("", None, "note"))
                )
                for index in {self.index() for _ in range(2)}
            ]
            topics.append(OffsetCommitRequestTopic(*self.named(name, version >= 10), rows))
        return OffsetCommitRequest(group, generation, member, None, -1, topics), version

    def fetch_offsets(self) -> Drawn:
        version = self.version(9)
        names = None if version >= 2 and self.rarely(0.4) else {self.topic() for _ in range(2)}
        indexes = tuple({self.index() for _ in range(2)})
        if version < 8:
            old = None if names is None else [OffsetFetchRequestTopic(name, indexes) for name in names]
            return OffsetFetchRequest(
                self.group(), old, require_stable=version >= 7 and self.rarely()
            ), version
        groups = []
        for group in {self.group() for _ in range(self.one((1, 2)))}:
            topics = names and [
                OffsetFetchRequestTopics(*self.named(name, version >= 10), indexes) for name in names
            ]
            groups.append(OffsetFetchRequestGroup(group, topics=topics))
        return OffsetFetchRequest(groups=groups, require_stable=self.rarely()), version

    def delete_offsets(self) -> Drawn:
        rows = [OffsetDeleteRequestPartition(index) for index in {0, self.index()}]
        topics = [OffsetDeleteRequestTopic(name, rows) for name in {self.topic() for _ in range(2)}]
        return OffsetDeleteRequest(self.group(), topics), 0

    def describe_groups(self) -> Drawn:
        version = self.version(15)
        names = tuple({self.group(), self.group(), MISSING})
        return DescribeGroupsRequest(names, version >= 3 and self.rarely(0.4)), version

    def list_groups(self) -> Drawn:
        version = self.version(16)
        states = self.one(((), ("Empty",), ("stable", "nonsense"))) if version >= 4 else ()
        types = self.one(((), ("classic",), ("Consumer",))) if version >= 5 else ()
        return ListGroupsRequest(states, types), version

    def delete_groups(self) -> Drawn:
        return DeleteGroupsRequest(tuple({self.group(), self.group()})), self.version(42)
