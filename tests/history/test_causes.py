"""A broker that leaves or returns is named as the cause of what happens to partitions in the same event."""

from __future__ import annotations

from kraftd.cli.metadata.feed import lines_of
from kraftd.history.causes import Placement, causes_first, explains, with_causes
from kraftd.history.event import Event
from kraftd.history.story import Story
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.wire.message import Message

ORDERS, PAYMENTS = b"o" * 16, b"p" * 16
PARTITIONS = 15


def partition(topic_id: bytes, index: int, *replicas: int) -> PartitionRecord:
    directories = (b"d" * 16,) * len(replicas)
    return PartitionRecord(index, topic_id, replicas, replicas, (), (), replicas[0], 0, 0, 0, directories)


def cluster() -> Story:
    """Brokers 1 and 2; broker 2 leads all partitions of orders, and is the only replica of payments-0."""
    story = Story()
    orders = [partition(ORDERS, index, 2, 1) for index in range(PARTITIONS)]
    events_of(story, *(RegisterBrokerRecord(one, fenced=False) for one in (1, 2)))
    events_of(story, TopicRecord("orders", ORDERS), *orders)
    events_of(
        story, TopicRecord("payments", PAYMENTS), partition(PAYMENTS, 0, 2), partition(PAYMENTS, 1, 1, 2)
    )
    return story


def described(story: Story, *messages: Message, offset: int = 100) -> list[Event]:
    return list(story.describe(messages, offset, 3, 1_700_000_000_000))


def events_of(story: Story, *messages: Message) -> list[Event]:
    return with_causes(described(story, *messages))


def leaves(isr: int = 1) -> list[Message]:
    """The changes of partitions without broker 2."""
    return [
        *(PartitionChangeRecord(index, ORDERS, leader=1, isr=(isr,)) for index in range(PARTITIONS)),
        PartitionChangeRecord(0, PAYMENTS, leader=-1),
        PartitionChangeRecord(1, PAYMENTS, isr=(1,)),
    ]


FENCED = BrokerRegistrationChangeRecord(2, 0, fenced=1)
SUMMARY = "15 partitions moved, 1 ISR shrank, 1 topic offline (1 partition)"


def test_a_fenced_broker_is_named_before_its_partitions() -> None:
    events = events_of(cluster(), *leaves(), FENCED)
    assert events[-1].text == f"broker 2 fenced: {SUMMARY}"
    assert events[-1].row()["details"]["effects"] == {"leader-moved": 15, "leader-lost": 1, "isr-shrank": 1}
    lines = [line.partition("  ")[2].split("  ")[-1] for line in lines_of(causes_first(events))]
    assert lines[0] == f"broker 2 fenced: {SUMMARY}"
    assert lines[1].startswith("orders-0: leader moved from broker 2 to broker 1")
    assert lines[11] == "and 5 more partitions: leader-moved (--json shows all)"
    assert lines[-1] == "payments-1: ISR shrank from 1, 2 to 1"


def test_unregistration_and_controlled_shutdown_are_causes_too() -> None:
    assert events_of(cluster(), *leaves(), UnregisterBrokerRecord(2, 0))[-1].text == (
        f"broker 2 unregistered: {SUMMARY}"
    )
    stops = events_of(cluster(), BrokerRegistrationChangeRecord(2, 0, 0, 1), *leaves())
    assert stops[0].text == f"broker 2 started a controlled shutdown: {SUMMARY}"
    assert causes_first(stops) == stops


def test_a_broker_that_returns_is_named_with_what_is_online_again() -> None:
    story = cluster()
    events_of(story, *leaves(), FENCED)
    back = PartitionChangeRecord(0, PAYMENTS, leader=2)
    unfenced = BrokerRegistrationChangeRecord(2, 0, fenced=-1)
    assert events_of(story, unfenced, back)[0].text == (
        "broker 2 unfenced: 1 topic online again (1 partition)"
    )


def test_other_changes_in_the_batch_are_not_its_effects() -> None:
    story = cluster()
    other = PartitionChangeRecord(1, PAYMENTS, isr=(2, 1))  # broker 2 does not leave
    shrinks = PartitionChangeRecord(0, ORDERS, leader=1, isr=(1,))
    events = events_of(story, shrinks, other, FENCED)
    assert [one.text for one in events if one.kind == "broker-fenced"] == ["broker 2 fenced"]
    assert causes_first(events) == events
    events = events_of(cluster(), other, shrinks, FENCED, TopicRecord("new", b"n" * 16))
    assert [one.kind for one in causes_first(events)][1:] == [
        "broker-fenced",
        "leader-moved",
        "topic-created",
    ]
    assert events[2].text == "broker 2 fenced: 1 partition moved"


def test_an_event_of_several_batches_has_one_cause() -> None:
    story, changes = cluster(), leaves()
    batches = [changes[at : at + 4] for at in range(0, len(changes), 4)]
    events = [
        one for at, batch in enumerate(batches) for one in described(story, *batch, offset=100 + 4 * at)
    ]
    events += described(story, FENCED, offset=100 + len(changes))
    assert with_causes(events)[-1].text == f"broker 2 fenced: {SUMMARY}"


def test_a_record_in_between_separates_events() -> None:
    story, changes = cluster(), leaves()
    events = described(story, *changes)
    events += described(story, FENCED, offset=100 + len(changes) + 1)
    assert with_causes(events)[-1].text == "broker 2 fenced"


def test_the_end_of_a_shutdown_is_not_the_cause_of_what_the_shutdown_changed() -> None:
    stopping = BrokerRegistrationChangeRecord(2, 0, 0, 1)
    events = events_of(cluster(), stopping, *leaves(), FENCED)
    assert events[0].text == f"broker 2 started a controlled shutdown: {SUMMARY}"
    assert events[-1].text == "broker 2 fenced"


def test_moves_that_a_broker_does_not_explain_are_not_its_effects() -> None:
    before = Placement(2, (1, 2), (2, 1))
    assert explains("broker-fenced", 2, before, Placement(1, (1,), (2, 1)))
    assert explains("broker-fenced", 2, before, Placement(-1, (2,), (2, 1)))
    assert not explains("broker-fenced", 2, before, Placement(1, (1, 2), (2, 1))), "a preferred election"
    assert not explains("broker-fenced", 2, before, Placement(1, (1,), (1, 3))), "a reassignment"
    assert not explains("broker-unfenced", 2, before, Placement(1, (1,), (2, 1)))
