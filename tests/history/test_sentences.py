"""Every record type has a sentence about its change, and no sentence contains a secret."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.history.event import Event
from kraftd.history.kinds import KINDS
from kraftd.history.story import SENTENCES, Story, sentence
from kraftd.messages.access_control_entry_record import AccessControlEntryRecord
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.client_quota_record import ClientQuotaRecord, EntityData
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.feature_level_record import FeatureLevelRecord
from kraftd.messages.leader_change_message import LeaderChangeMessage, Voter
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kraftd.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kraftd.messages.remove_topic_record import RemoveTopicRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.messages.voters_record import Voter as NamedVoter
from kraftd.messages.voters_record import VotersRecord
from kraftd.metadata.image import Image
from kraftd.metadata.replay import REPLAY
from kraftd.wire.message import Message
from tests.metadata.histories import history

ORDERS = b"o" * 16
DIRECTORY = b"d" * 16


def partition(index: int, *replicas: int) -> PartitionRecord:
    directories = (DIRECTORY,) * len(replicas)
    return PartitionRecord(index, ORDERS, replicas, replicas, (), (), replicas[0], 0, 0, 0, directories)


def events_of(story: Story, *messages: Message, offset: int = 10) -> list[Event]:
    return list(story.describe(messages, offset, 3, 1_700_000_000_000))


@pytest.fixture
def story() -> Story:
    """One topic of two partitions on brokers 1, 2 and 3."""
    story_ = Story()
    events_of(story_, TopicRecord("orders", ORDERS), partition(0, 1, 2, 3), partition(1, 2, 3, 1), offset=0)
    return story_


def only(events: list[Event]) -> tuple[str, str]:
    assert len(events) == 1
    return events[0].kind, events[0].text


def test_a_new_topic_is_one_event_with_its_partitions_and_configs() -> None:
    config = ConfigRecord(2, "orders", "retention.ms", "500")
    events = events_of(Story(), TopicRecord("orders", ORDERS), config, partition(0, 1, 2), partition(1, 2, 1))
    assert only(events) == (
        "topic-created",
        "topic orders created with 2 partitions, replication factor 2, retention.ms=500",
    )
    assert events[0].offset == 10 and events[0].row()["details"]["partitions"] == 2


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({"leader": 2}, "leader-moved", "leader moved from broker 1 to broker 2 (leader epoch 1)"),
        ({"leader": -1}, "leader-lost", "lost its leader, broker 1 (leader epoch 1)"),
        ({"leader": 1}, "leader-epoch-raised", "leader epoch raised to 1, leader still 1"),
        ({"isr": (1, 2)}, "isr-shrank", "ISR shrank from 1, 2, 3 to 1, 2"),
        (
            {"isr": (2,), "leader": 2},
            "leader-moved",
            "leader moved from broker 1 to broker 2 (leader epoch 1); ISR shrank from 1, 2, 3 to 2",
        ),
        (
            {"leader": 3, "isr": (3,), "leader_recovery_state": 1},
            "unclean-election",
            "broker 3 was elected uncleanly (leader epoch 1): records may be lost; "
            "ISR shrank from 1, 2, 3 to 3",
        ),
        (
            {"replicas": (1, 2, 3, 4), "adding_replicas": (4,), "removing_replicas": (1,)}
            | {"directories": (DIRECTORY,) * 4},
            "reassignment-started",
            "reassignment started: adding broker 4, removing broker 1",
        ),
    ],
)
def test_a_partition_change_lists_the_changed_fields(
    story: Story, change: dict[str, object], kind: str, text: str
) -> None:
    record = PartitionChangeRecord(0, ORDERS, **change)  # type: ignore[arg-type]
    assert only(events_of(story, record)) == (kind, f"orders-0: {text}")


def test_a_growing_isr_and_a_returning_leader_have_sentences(story: Story) -> None:
    events_of(story, PartitionChangeRecord(0, ORDERS, isr=(1,), leader=-1))
    events = events_of(story, PartitionChangeRecord(0, ORDERS, isr=(1, 3), leader=1))
    assert only(events) == (
        "leader-elected",
        "orders-0: has a leader again, broker 1 (leader epoch 2); ISR grew from 1 to 1, 3",
    )


def test_a_reassignment_that_ends_is_completed_or_cancelled(story: Story) -> None:
    moving = PartitionChangeRecord(
        0,
        ORDERS,
        replicas=(1, 2, 3, 4),
        adding_replicas=(4,),
        removing_replicas=(1,),
        directories=(DIRECTORY,) * 4,
    )
    for replicas, end in (((2, 3, 4), "completed"), ((1, 2, 3), "cancelled")):
        events_of(story, moving)
        ended = PartitionChangeRecord(
            0,
            ORDERS,
            replicas=replicas,
            isr=replicas,
            adding_replicas=(),
            removing_replicas=(),
            directories=(DIRECTORY,) * 3,
        )
        assert events_of(story, ended)[0].kind == f"reassignment-{end}"
        events_of(story, partition(0, 1, 2, 3))


def test_a_deleted_topic_has_its_name_and_size(story: Story) -> None:
    assert only(events_of(story, RemoveTopicRecord(ORDERS))) == (
        "topic-deleted",
        "topic orders deleted (2 partitions)",
    )


def test_a_config_change_has_the_value_before(story: Story) -> None:
    events_of(story, ConfigRecord(2, "orders", "retention.ms", "500"))
    change = events_of(story, ConfigRecord(2, "orders", "retention.ms", "900"))
    assert only(change) == ("config-changed", "config retention.ms of topic orders set to 900 (was 500)")
    assert change[0].row()["topic"] == "orders"
    removed = events_of(story, ConfigRecord(2, "orders", "retention.ms", None))
    assert only(removed) == ("config-removed", "config retention.ms of topic orders removed (was 900)")


@pytest.mark.parametrize("key", ["ssl.keystore.password", "listener.name.x.ssl.key.password", "no.such.key"])
def test_a_value_that_may_be_a_secret_is_hidden(key: str) -> None:
    story = Story()
    events_of(story, ConfigRecord(4, "", key, "s3cret-1"))
    event = events_of(story, ConfigRecord(4, "", key, "s3cret-2"))[0]
    assert event.text == f"config {key} of all brokers set to [redacted] (was [redacted])"
    assert b"s3cret" not in json.dumps(event.row()).encode()


def test_each_state_change_of_a_broker_is_an_event() -> None:
    story = Story()
    record = RegisterBrokerRecord(
        7, incarnation_id=b"i" * 16, broker_epoch=4, end_points=[BrokerEndpoint("EXT", "h", 9092)], rack="a"
    )
    assert only(events_of(story, record)) == (
        "broker-registered",
        "broker 7 registered at EXT://h:9092, rack a, fenced (broker epoch 4)",
    )
    unfenced = BrokerRegistrationChangeRecord(7, 4, -1)
    assert only(events_of(story, unfenced)) == ("broker-unfenced", "broker 7 unfenced")
    stops = BrokerRegistrationChangeRecord(7, 4, 0, 1)
    assert only(events_of(story, stops)) == ("broker-shutting-down", "broker 7 started a controlled shutdown")
    record.incarnation_id = b"j" * 16
    assert "registered again after a restart" in events_of(story, record)[0].text


def test_features_quotas_and_acls_have_kafkas_names() -> None:
    story = Story()
    assert events_of(story, FeatureLevelRecord("metadata.version", 29))[0].text == (
        "feature metadata.version set to 4.2-IV1"
    )
    assert events_of(story, FeatureLevelRecord("metadata.version", 30))[0].text == (
        "feature metadata.version set to 4.3-IV0 (was 4.2-IV1)"
    )
    entity = [EntityData("user", None), EntityData("client-id", "app")]
    assert events_of(story, ClientQuotaRecord(entity, "producer_byte_rate", 1000.0, False))[0].text == (
        "quota producer_byte_rate of client-id app, the default user set to 1000.0"
    )
    assert events_of(story, ClientQuotaRecord(entity, "producer_byte_rate", 12345678.5, False))[0].text == (
        "quota producer_byte_rate of client-id app, the default user set to 1.23456785E7 (was 1000.0)"
    )
    acl = AccessControlEntryRecord(b"a" * 16, 2, "orders", 3, "User:alice", "*", 3, 3)
    words = "User:alice from * is allowed READ on topic orders (LITERAL)"
    assert events_of(story, acl)[0].text == f"ACL added: {words}"
    assert events_of(story, RemoveAccessControlEntryRecord(b"a" * 16))[0].text == f"ACL removed: {words}"
    secret = events_of(story, UserScramCredentialRecord("alice", 1, b"salt", b"stored", b"server", 4096))
    assert only(secret) == ("credential-added", "SCRAM-SHA-256 credential of user alice added")


def test_changes_of_leader_and_voters_have_sentences() -> None:
    story = Story()
    first = story.describe_control(LeaderChangeMessage(0, 100, [Voter(100), Voter(101)]), 5, 7, 0)
    assert first is not None and first.text == "controller 100 leads the quorum in epoch 7 (voters 100, 101)"
    change = story.describe_control(VotersRecord(0, [NamedVoter(100), NamedVoter(102)]), 6, 7, 0)
    assert change is not None
    assert change.text == "voters of the quorum are 100, 102 (added 102, removed 101)"


def test_a_no_op_has_no_sentence() -> None:
    assert events_of(Story(), NoOpRecord()) == []


def test_every_record_that_is_replayed_has_a_sentence() -> None:
    assert set(REPLAY) - set(SENTENCES) == {TopicRecord, NoOpRecord}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 32))
def test_any_history_has_sentences_and_gives_the_image_of_its_replay(seed: int) -> None:
    messages = history(seed, 150)
    story, replayed = Story(), Image()
    for offset, message in enumerate(messages):
        replayed.apply(message, offset, 1)
    events = list(story.describe(messages, 0, 1, 0))
    assert story.image == replayed
    assert all(event.text.isprintable() and event.text for event in events)
    assert [event.offset for event in events] == sorted({event.offset for event in events})
    assert {kind for event in events for kind in event.kinds} <= KINDS
    json.dumps([event.row() for event in events])


def test_a_record_about_nothing_known_still_has_a_sentence() -> None:
    unknown = sentence(Image(), PartitionChangeRecord(4, ORDERS, leader=2))
    assert unknown is not None and "not known here" in unknown.text


def test_a_line_break_in_a_value_stays_on_the_line_of_its_event() -> None:
    event = events_of(Story(), ConfigRecord(2, "orders", "cleanup.policy", "a\nb"))[0]
    assert event.text.endswith("set to a\\nb")
