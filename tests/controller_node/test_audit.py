"""The audit log has each change once it is committed, with the sender, and never a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kraftd.controller_node.watching import audit as audit_module
from kraftd.messages import client_quota_record as quota
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.controller_registration_request import ControllerRegistrationRequest
from kraftd.messages.controller_registration_request import Listener as ControllerListener
from kraftd.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kraftd.messages.delegation_token_record import DelegationTokenRecord
from kraftd.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest
from kraftd.messages.describe_quorum_request import PartitionData as DescribedPartition
from kraftd.messages.describe_quorum_request import TopicData as DescribedTopic
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.fence_broker_record import FenceBrokerRecord
from kraftd.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unfence_broker_record import UnfenceBrokerRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.metadata.image import Image
from kraftd.metadata.snapshot_records import broker_record
from kraftd.metadata.state import BROKER_RESOURCE, TOPIC_RESOURCE, TopicState
from kraftd.requests.call import Call
from kraftd.security.principals import Principal
from kraftd.types import METADATA_TOPIC, uuid_text
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import Cluster
from tests.controller_node.harness import Harness


def events(harness: Harness, name: str) -> list[dict[str, Any]]:
    return [effect.fields for effect in harness.audited if effect.event == name]


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    harness = Harness(tmp_path).start()
    for broker_id in (1, 2):
        harness.unfenced(broker_id)
    harness.audited.clear()
    return harness


def test_up_to_ten_topics_are_named_with_the_sender(harness: Harness) -> None:
    harness.create(*(f"t{at:02}" for at in range(12)))
    (created,) = events(harness, "topics created")
    assert created["count"] == 12
    assert created["topics"] == ", ".join(f"t{at:02}" for at in range(10)) + ", …"
    assert created["principal"] == "User:ANONYMOUS"
    assert (created["client_id"], created["api"]) == ("test", "CREATE_TOPICS")
    assert "partitions added" not in {effect.event for effect in harness.audited}


def test_deleted_topics_are_named(harness: Harness) -> None:
    harness.create("a", "b")
    topics = [DeleteTopicState(name=name) for name in ("a", "b")]
    harness.send(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(topics=topics, timeout_ms=1000))
    (deleted,) = events(harness, "topics deleted")
    assert (deleted["count"], deleted["topics"]) == (2, "a, b")
    assert "topics deleted" in harness.logged_texts


def test_configs_are_audited_by_key_and_never_by_value(harness: Harness) -> None:
    harness.create("a")
    configs = [AlterableConfig("retention.ms", 0, "1234567")]
    resource = AlterConfigsResource(TOPIC_RESOURCE, "a", configs)
    harness.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(resources=[resource]))
    (changed,) = events(harness, "configs changed")
    assert (changed["resource"], changed["set"]) == ("topic a", ["retention.ms"])
    assert "1234567" not in repr(harness.audited)


def test_a_fenced_broker_has_its_reason_and_its_partitions(harness: Harness) -> None:
    harness.create("a", partitions=4)
    harness.advance(harness.config.broker_session_timeout_ms + 1_000)
    fenced = events(harness, "broker fenced")
    assert {event["broker"] for event in fenced} == {1, 2}
    assert all(event["reason"] == "no heartbeat within broker.session.timeout.ms" for event in fenced)
    assert sum(event.get("leaders_moved", 0) for event in fenced) >= 4
    assert all("principal" not in event for event in fenced)


def test_nothing_is_audited_before_its_commit(harness: Harness) -> None:
    harness.sync_by_itself = False
    harness.create("a")
    assert events(harness, "topics created") == []
    harness.sync()
    assert len(events(harness, "topics created")) == 1


def test_the_release_of_metadata_version_is_named(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    levels = {event["feature"]: event for event in events(harness, "feature changed")}
    assert levels["metadata.version"]["release"] == "4.3-IV0"


def test_a_refused_registration_is_audited_at_once_and_then_once_a_minute(harness: Harness) -> None:
    request = BrokerRegistrationRequest(broker_id=7, cluster_id="of-another-cluster")
    for _ in range(5):
        harness.send(ApiKey.BROKER_REGISTRATION, 4, request)
    (refused,) = events(harness, "node refused")
    assert (refused["error"], refused["from_node"], refused["seen"]) == ("INCONSISTENT_CLUSTER_ID", 7, 1)
    assert "cluster" in refused["remedy"]
    assert harness.logged_texts.count("a node is refused") == 1


def test_a_second_broker_of_an_id_is_in_the_description_of_the_quorum(harness: Harness) -> None:
    assert harness.register(1, incarnation=2).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    (refused,) = events(harness, "node refused")
    assert (refused["error"], refused["from_node"]) == ("DUPLICATE_BROKER_REGISTRATION", 1)
    topic = DescribedTopic(METADATA_TOPIC, [DescribedPartition(0)])
    answer = harness.ask(ApiKey.DESCRIBE_QUORUM, 2, DescribeQuorumRequest([topic]))
    assert answer.error_code == 0
    assert "node 1 at" in answer.error_message
    assert "give one of them its own" in answer.error_message


def test_every_kind_of_change_names_no_secret() -> None:
    forbidden = ("salt", "stored_key", "server_key", "hmac", ".value")
    source = Path(audit_module.__file__).read_text()
    assert not [word for word in forbidden if word in source.replace("record.value is None", "")]


def test_a_controller_that_registers_is_named_by_its_own_id(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    request = ControllerRegistrationRequest(9, b"i" * 16, False, [ControllerListener("C", "h", 9093, 0)], [])
    harness.send(ApiKey.CONTROLLER_REGISTRATION, 0, request)
    assert events(harness, "controller registered")[-1]["controller"] == 9


def test_added_partitions_are_named_by_topic_and_counted(harness: Harness) -> None:
    harness.create("a")
    topic = CreatePartitionsTopic("a", 4, None)
    harness.send(ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest([topic], 1000))
    (added,) = events(harness, "partitions added")
    assert (added["topic"], added["count"], added["api"]) == ("a", 3, "CREATE_PARTITIONS")


def test_very_many_added_partitions_are_counted_with_one_look_at_each_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster().brokers(1)
    topics = [cluster.topic(name, (1,)) for name in ("a", "b")]
    messages = [PartitionRecord(index, topic.id, (1,), (1,)) for index in range(300) for topic in topics]
    looks: list[bytes] = []

    def look(image: Image, topic_id: bytes) -> TopicState | None:
        looks.append(topic_id)
        return image.topics.get(topic_id)

    monkeypatch.setattr(Image, "topic", look)
    assert audited(cluster, *messages) == [
        ("partitions added", {"topic": "a", "count": 300}),
        ("partitions added", {"topic": "b", "count": 300}),
    ]
    assert looks == [topic.id for topic in topics]


def test_changes_of_isrs_and_leaders_are_counted_per_request() -> None:
    cluster = Cluster().brokers(1, 2, 3)
    topic = cluster.topic("a", (1, 2, 3), (2, 3, 1), (3, 1, 2))
    changes = [
        PartitionChangeRecord(0, topic.id, isr=(2, 3), leader=2),
        PartitionChangeRecord(1, topic.id, isr=(2, 3)),
        PartitionChangeRecord(2, topic.id, leader=-1),
    ]
    records = [VersionedRecord(change, 2) for change in changes]
    (event,) = audit_module.audit(cluster.image, records, 9, None)
    assert (event.event, event.fields) == (
        "partitions changed",
        {"isr_shrunk": 2, "leaders_moved": 2, "without_leader": 1},
    )


def test_an_equal_registration_of_another_version_is_not_audited() -> None:
    cluster = Cluster().broker(1, cordoned=())
    again = broker_record(replace(cluster.image.brokers[1], cordoned_directories=None), 29)
    assert audit_module.audit(cluster.image, [again], 9, None) == []


def test_changes_of_a_broker_have_its_id_and_epoch() -> None:
    cluster = Cluster().broker(1)
    named = {"broker": 1, "broker_epoch": 101}
    silent = {**named, "reason": "no heartbeat within broker.session.timeout.ms"}
    registered = RegisterBrokerRecord(
        broker_id=2,
        broker_epoch=7,
        incarnation_id=bytes(15) + b"\1",
        end_points=[BrokerEndpoint("A", "h", 9092), BrokerEndpoint("B", "i", 9093)],
    )
    for record, event, fields in (
        (FenceBrokerRecord(1, 101), "broker fenced", silent),
        (UnfenceBrokerRecord(1, 101), "broker unfenced", named),
        (BrokerRegistrationChangeRecord(1, 101, 1), "broker fenced", silent),
        (BrokerRegistrationChangeRecord(1, 101, -1), "broker unfenced", named),
        (BrokerRegistrationChangeRecord(1, 101, 0, 1), "broker shutting down", silent),
        (
            registered,
            "broker registered",
            {
                "broker": 2,
                "broker_epoch": 7,
                "incarnation_id": "AAAAAAAAAAAAAAAAAAAAAQ",
                "listeners": ["A://h:9092", "B://i:9093"],
                "rack": "",
                "fenced": True,
                "directories": [],
            },
        ),
    ):
        (line,) = audit_module.audit(cluster.image, [VersionedRecord(record, 0)], 9, None)
        assert (line.event, line.fields) == (event, fields)


TEN = ", ".join(f"t{at}" for at in range(10))
CLIENT = [EntityData("client-id", "app"), EntityData("user", None)]


@pytest.mark.parametrize(
    ("records", "event", "fields"),
    [
        (
            [ConfigRecord(TOPIC_RESOURCE, "a", "x", None), ConfigRecord(TOPIC_RESOURCE, "a", "y", "s3cret")],
            "configs changed",
            {"resource": "topic a", "removed": ["x"], "set": ["y"]},
        ),
        (
            [ConfigRecord(BROKER_RESOURCE, "", "x", "s3cret")],
            "configs changed",
            {"resource": "broker (default)", "set": ["x"]},
        ),
        (
            [AccessControlEntryRecord(), AccessControlEntryRecord(), RemoveAccessControlEntryRecord()],
            "ACLs changed",
            {"added": 2, "removed": 1},
        ),
        (
            [
                UserScramCredentialRecord("alice", 1, b"s3cret", b"s3cret", b"s3cret"),
                UserScramCredentialRecord("alice", 2, b"s3cret", b"s3cret", b"s3cret"),
                RemoveUserScramCredentialRecord("bob", 1),
            ],
            "SCRAM credentials changed",
            {"users": "alice, bob"},
        ),
        (
            [ClientQuotaRecord(CLIENT, "producer_byte_rate", 5.0), ClientQuotaRecord(CLIENT, "other", 5.0)],
            "quotas changed",
            {"entities": "client-id app and user (default)"},
        ),
        (
            [DelegationTokenRecord(token_id="s3cret"), RemoveDelegationTokenRecord("s3cret")],
            "delegation tokens changed",
            {"count": 2},
        ),
        (
            [UnregisterBrokerRecord(1, 101)],
            "broker unregistered",
            {"broker": 1, "broker_epoch": 101},
        ),
        ([TopicRecord(f"t{at}") for at in range(10)], "topics created", {"count": 10, "topics": TEN}),
        (
            [TopicRecord("b", b"b" * 16), PartitionRecord(0, b"b" * 16), ConfigRecord(9, "b", "x", "y")],
            "topics created",
            {"count": 1, "topics": "b"},
        ),
    ],
)
def test_a_change_of_state_becomes_one_audit_event(
    records: list[Message], event: str, fields: dict[str, Any]
) -> None:
    lines = audit_module.audit(Cluster().image, [VersionedRecord(one, 0) for one in records], 9, None)
    assert [line.fields for line in lines if line.event == event] == [fields]
    assert "partitions added" not in [line.event for line in lines]
    assert "s3cret" not in repr([line.fields for line in lines])


def test_partition_changes_without_isr_or_leader_are_not_audited() -> None:
    cluster = Cluster().brokers(1, 2, 3)
    topic = cluster.topic("a", (1, 2), (1, 2), (1, 2), (1, 2))
    cluster.apply([VersionedRecord(PartitionChangeRecord(1, topic.id, isr=(1,)), 2)])
    changes = [
        PartitionChangeRecord(0, topic.id, leader=1),  # the leader already
        PartitionChangeRecord(1, topic.id, isr=(1, 2)),
        PartitionChangeRecord(2, topic.id, adding_replicas=(3,)),
        PartitionChangeRecord(3, topic.id, replicas=(2, 1)),
    ]
    (event,) = audit_module.audit(cluster.image, [VersionedRecord(one, 2) for one in changes], 9, None)
    assert event.fields == {"isr_expanded": 1, "reassigned": 2}


def test_the_partitions_of_a_fenced_broker_are_audited_once_with_the_reason(harness: Harness) -> None:
    cluster = Cluster().brokers(1, 2)
    topic = cluster.topic("a", (1, 2))
    records = [
        VersionedRecord(BrokerRegistrationChangeRecord(1, 101, 0, 1), 0),
        VersionedRecord(PartitionChangeRecord(0, topic.id, isr=(2,), leader=2), 2),
    ]
    (event,) = audit_module.audit(cluster.image, records, 9, None)
    moved = {"isr_shrunk": 1, "leaders_moved": 1}
    assert {name: event.fields[name] for name in moved} == moved
    epoch = harness.node.image.brokers[1].epoch
    harness.beat(1, epoch, current_metadata_offset=epoch, want_shut_down=True)
    (event,) = events(harness, "broker shutting down") or events(harness, "broker fenced")
    assert event["reason"] == "the broker asked for it" and event["api"] == "BROKER_HEARTBEAT"


def audited(cluster: Cluster, *messages: Any, call: Call | None = None) -> list[tuple[str, dict[str, Any]]]:
    """The events of these records, which end before offset 9, and the events' fields."""
    lines = audit_module.audit(cluster.image, [VersionedRecord(one, 0) for one in messages], 9, call)
    assert all(line.offset == 9 for line in lines)
    return [(line.event, line.fields) for line in lines]


def quota_of(*entity: tuple[str, str | None]) -> quota.ClientQuotaRecord:
    return quota.ClientQuotaRecord([quota.EntityData(*part) for part in entity], "producer_byte_rate", 1.0)


ID, OTHER_ID = bytes(15) + b"\1", bytes(15) + b"\2"
NAMES = [f"n{number:02}" for number in range(11)]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([NoOpRecord()], []),
        (
            [ConfigRecord(2, "a", "k", "v"), ConfigRecord(2, "a", "l", None), ConfigRecord(2, "a", "m", "v")],
            [("configs changed", {"resource": "topic a", "set": ["k", "m"], "removed": ["l"]})],
        ),
        (
            [ConfigRecord(4, "", "k", "v"), ConfigRecord(4, "1", "k", None), ConfigRecord(16, "s", "k", "v")],
            [
                ("configs changed", {"resource": "broker (default)", "set": ["k"]}),
                ("configs changed", {"resource": "broker 1", "removed": ["k"]}),
                ("configs changed", {"resource": "client metrics s", "set": ["k"]}),
            ],
        ),
        (
            [ConfigRecord(32, "g", "k", "v"), ConfigRecord(99, "x", "k", "v")],
            [
                ("configs changed", {"resource": "group g", "set": ["k"]}),
                ("configs changed", {"resource": "resource 99 x", "set": ["k"]}),
            ],
        ),
        (
            [AccessControlEntryRecord(ID)] * 2 + [RemoveAccessControlEntryRecord(ID)] * 3,
            [("ACLs changed", {"added": 2, "removed": 3})],
        ),
        ([RemoveAccessControlEntryRecord(ID)], [("ACLs changed", {"added": 0, "removed": 1})]),
        (
            [UserScramCredentialRecord("b", 1), RemoveUserScramCredentialRecord("a", 1)] * 2,
            [("SCRAM credentials changed", {"users": "b, a"})],
        ),
        (
            [UserScramCredentialRecord(name, 1) for name in NAMES],
            [("SCRAM credentials changed", {"users": ", ".join(NAMES[:10])})],
        ),
        (
            [quota_of(("user", "a"), ("client-id", None)), quota_of(("ip", "h"))] * 2,
            [("quotas changed", {"entities": "user a and client-id (default), ip h"})],
        ),
        (
            [quota_of(("user", name)) for name in NAMES],
            [("quotas changed", {"entities": ", ".join(f"user {name}" for name in NAMES[:10])})],
        ),
        (
            [DelegationTokenRecord(), RemoveDelegationTokenRecord("t"), RemoveDelegationTokenRecord("u")],
            [("delegation tokens changed", {"count": 3})],
        ),
        (
            [FeatureLevelRecord("metadata.version", 30), FeatureLevelRecord("group.version", 1)],
            [
                (
                    "feature changed",
                    {
                        "feature": "metadata.version",
                        "finalized_level": 30,
                        "before": 30,
                        "release": "4.3-IV0",
                    },
                ),
                ("feature changed", {"feature": "group.version", "finalized_level": 1}),
            ],
        ),
        (
            [RegisterControllerRecord(7, ID)],
            [("controller registered", {"controller": 7, "listeners": [], "incarnation_id": uuid_text(ID)})],
        ),
        ([UnregisterBrokerRecord(1, 101)], [("broker unregistered", {"broker": 1, "broker_epoch": 101})]),
        (
            [BrokerRegistrationChangeRecord(1, 101)],
            [],
        ),
    ],
)
def test_each_kind_of_record_is_audited_with_its_names(records: list[Any], expected: list[Any]) -> None:
    found = audited(Cluster(), *records)
    assert found == expected
    of_the_line = {"event", "level", "node", "timestamp"}
    assert not [fields for _, fields in found if of_the_line & fields.keys()]


def test_created_topics_and_their_partitions_are_one_event() -> None:
    cluster = Cluster().broker(1)
    old = cluster.topic("old", (1,))
    created = [TopicRecord("a", ID), PartitionRecord(0, ID, (1,)), PartitionRecord(1, ID, (1,))]
    named = ("topics created", {"count": 1, "topics": "a"})
    assert audited(cluster, *created) == [named]
    config = ConfigRecord(2, "a", "k", "v")
    assert audited(cluster, *created, config) == [
        named,
        ("configs changed", {"resource": "topic a", "set": ["k"]}),
    ]
    more = [PartitionRecord(number, old.id, (1,)) for number in (1, 2)]
    strange = PartitionRecord(0, OTHER_ID, (1,))
    assert audited(cluster, *more, strange) == [
        ("partitions added", {"topic": "old", "count": 2}),
        ("partitions added", {"topic": uuid_text(OTHER_ID), "count": 1}),
    ]


def test_deleted_topics_are_named_by_id_where_the_name_is_unknown() -> None:
    cluster = Cluster().broker(1)
    removed = [RemoveTopicRecord(cluster.topic("a", (1,)).id), RemoveTopicRecord(OTHER_ID)]
    assert audited(cluster, *removed) == [
        ("topics deleted", {"count": 2, "topics": f"a, {uuid_text(OTHER_ID)}"})
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"isr": (1, 2, 3)}, {}),
        ({"isr": (3, 2, 1)}, {}),
        ({"isr": (1, 2)}, {"isr_shrunk": 1}),
        ({"isr": (1, 2, 3, 4)}, {"isr_expanded": 1}),
        ({"isr": (1, 4)}, {"isr_shrunk": 1, "isr_expanded": 1}),
        ({"leader": 1}, {}),
        ({"leader": 2}, {"leaders_moved": 1}),
        ({"leader": 0}, {"leaders_moved": 1}),
        ({"leader": -1}, {"leaders_moved": 1, "without_leader": 1}),
        ({"replicas": (1, 2)}, {"reassigned": 1}),
        ({"adding_replicas": (4,)}, {"reassigned": 1}),
        ({"removing_replicas": (3,)}, {"reassigned": 1}),
        ({"adding_replicas": (), "removing_replicas": ()}, {}),
        ({"isr": (1,), "partition_id": 9}, {}),  # unknown
    ],
)
def test_partition_changes_are_counted_by_kind(change: dict[str, Any], expected: dict[str, int]) -> None:
    cluster = Cluster().brokers(1, 2, 3, 4)
    topic = cluster.topic("a", (1, 2, 3))
    record = PartitionChangeRecord(**{"partition_id": 0, "topic_id": topic.id, **change})
    assert audited(cluster, record) == ([("partitions changed", expected)] if expected else [])
    unfenced = ("broker unfenced", {"broker": 1, "broker_epoch": 101})
    changed = [("partitions changed", expected)] if expected else []
    assert audited(cluster, record, UnfenceBrokerRecord(1, 101)) == [unfenced, *changed]
    fenced: Any = audited(cluster, record, FenceBrokerRecord(1, 101), FenceBrokerRecord(2, 102))
    silent = "no heartbeat within broker.session.timeout.ms"
    assert fenced == [  # the first has the partitions
        ("broker fenced", {"broker": 1, "broker_epoch": 101, "reason": silent, **expected}),
        ("broker fenced", {"broker": 2, "broker_epoch": 102, "reason": silent}),
    ]


def test_an_event_names_the_sender_of_the_request() -> None:
    call = Call(1, 0, "C", "10.0.0.1", ApiKey.BROKER_HEARTBEAT, 0, 1, "id", None, Principal("User", "b"))
    party = {"principal": "User:b", "client_id": "id", "host": "10.0.0.1", "api": "BROKER_HEARTBEAT"}
    cluster = Cluster().broker(1)
    topic = cluster.topic("a", (1,))
    event = {"broker": 1, "broker_epoch": 101, "reason": "the broker asked for it", **party}
    assert audited(cluster, FenceBrokerRecord(1, 101), call=call) == [("broker fenced", event)]
    for record, event in (
        (TopicRecord("b", ID), "topics created"),
        (PartitionChangeRecord(0, topic.id, leader=-1), "partitions changed"),
    ):
        ((name, fields),) = audited(cluster, record, call=call)
        assert name == event and fields.items() >= party.items()


def test_changes_of_partitions_are_summed_over_topics() -> None:
    cluster = Cluster().brokers(1, 2)
    records = []
    for name in ("a", "b"):
        topic = cluster.topic(name, (1, 2), (1, 2))
        records += [PartitionChangeRecord(index, topic.id, leader=-1) for index in (0, 1)]
    moved = {"leaders_moved": 4, "without_leader": 4}
    assert audited(cluster, *records) == [("partitions changed", moved)]
    unknown = PartitionChangeRecord(0, bytes(15) + b"?", leader=-1)
    assert audited(cluster, records[0], unknown, records[1]) == [
        ("partitions changed", {"leaders_moved": 2, "without_leader": 2})
    ]


def test_configs_of_a_new_topic_are_audited_beside_it() -> None:
    topic = TopicRecord("a", bytes(15) + b"a")
    config = ConfigRecord(2, "a", "retention.ms", "1")
    assert audited(Cluster(), topic, config) == [
        ("topics created", {"count": 1, "topics": "a"}),
        ("configs changed", {"resource": "topic a", "set": ["retention.ms"]}),
    ]


def test_expanded_and_shrunk_isrs_are_counted_by_partition() -> None:
    cluster = Cluster().brokers(1, 2, 3)
    topic = cluster.topic("a", (1, 2), (1, 2), (1, 2), (1, 2))
    isrs = ((1,), (2,), (1, 2, 3), (2, 1, 3))
    records = [PartitionChangeRecord(index, topic.id, isr=isr) for index, isr in enumerate(isrs)]
    assert audited(cluster, *records) == [("partitions changed", {"isr_shrunk": 2, "isr_expanded": 2})]
