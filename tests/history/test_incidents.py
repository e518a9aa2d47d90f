"""An event that a controller divided into several batches is one line, with all its effects."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kraftd.cli.metadata.feed import lines_of
from kraftd.history.causes import MAX_PAUSE_MS, MAX_UNDIVIDED
from kraftd.history.event import Event
from kraftd.history.incidents import Incidents, Item, More
from kraftd.history.story import Story
from kraftd.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kraftd.messages.partition_change_record import PartitionChangeRecord
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.wire.message import Message

ORDERS = b"o" * 16
COUNT = 1_000  # partitions; broker 2 leads those with an even number, and is in sync in the others
SUMMARY = "500 partitions moved, 500 ISRs shrank"
START_MS = 1_700_000_000_000

FENCED = BrokerRegistrationChangeRecord(2, 0, fenced=1)
SHUTS_DOWN = BrokerRegistrationChangeRecord(2, 0, in_controlled_shutdown=1)
OTHER = TopicRecord("other", b"t" * 16)


class Log:
    """The events of a log whose batches come one after the other."""

    def __init__(self, in_order: bool = False, topic: str | None = None) -> None:
        self.story, self.offset = Story(), 0
        self.incidents = Incidents(
            lambda event: topic is None or event.meaning.topic == topic, in_order=in_order
        )
        brokers = [RegisterBrokerRecord(one, fenced=False) for one in (1, 2)]
        self.batch([*brokers, TopicRecord("orders", ORDERS), *map(partition, range(COUNT))])

    def batch(self, messages: Sequence[Message], after_ms: int = 0, epoch: int = 3) -> list[Item]:
        events = list(self.story.describe(messages, self.offset, epoch, START_MS + after_ms))
        self.offset += len(messages)
        return self.incidents.add(events)


def partition(index: int) -> PartitionRecord:
    replicas = (1, 2) if index % 2 else (2, 1)
    directories = (b"d" * 16,) * 2
    return PartitionRecord(index, ORDERS, replicas, replicas, (), (), replicas[0], 0, 0, 0, directories)


def leaves(*indexes: int) -> list[Message]:
    """The changes of partitions that broker 2 leaves."""
    return [
        PartitionChangeRecord(index, ORDERS, isr=(1,))
        if index % 2
        else PartitionChangeRecord(index, ORDERS, isr=(1,), leader=1)
        for index in indexes
    ]


def parts(*lengths: int) -> list[list[Message]]:
    """The same for all partitions, in parts of these lengths and the rest."""
    ends = [sum(lengths[:at]) for at in range(len(lengths) + 1)]
    return [leaves(*range(start, end)) for start, end in zip(ends, [*ends[1:], COUNT], strict=True)]


def texts(items: Sequence[Item], kind: str = "broker") -> list[str]:
    return [item.text for item in items if isinstance(item, Event) and item.meaning.subject == kind]


@pytest.mark.parametrize("lengths", [(), (600,), (350, 350), (300, 300, 300), (600, 400)])
def test_a_fencing_in_several_batches_is_summed_up_once(lengths: tuple[int, ...]) -> None:
    log = Log()
    *before, last = parts(*lengths)
    shown = [item for batch in before for item in log.batch(batch)]
    assert not shown, "the effects wait for their cause"
    shown = log.batch([*last, FENCED])
    assert texts(shown[:1]) == [f"broker 2 fenced: {SUMMARY}"]
    assert [(item.kind, item.count) for item in shown if isinstance(item, More)] == [
        ("leader-moved", 490),
        ("isr-shrank", 490),
    ]
    assert len(shown) == 1 + 20 + 2
    assert not log.incidents.is_open
    assert any("and 490 more partitions: leader-moved" in line for line in lines_of(shown))


def test_scripts_get_every_event_in_order_and_the_sum_at_the_cause() -> None:
    log = Log(in_order=True)
    first, last = parts(600)
    shown = log.batch(first)
    assert len(shown) == 600, "scripts do not wait for what follows"
    shown += log.batch([*last, FENCED])
    offsets = [item.offset for item in shown]
    assert offsets == sorted(offsets) and len(offsets) == COUNT + 1
    assert isinstance(shown[-1], Event)
    assert shown[-1].row()["details"]["effects"] == {"leader-moved": 500, "isr-shrank": 500}


@pytest.mark.parametrize("in_order", [False, True])
def test_a_controlled_shutdown_is_summed_up_and_the_fencing_after_it_is_not(
    in_order: bool,
) -> None:
    for head in ([SHUTS_DOWN], [SHUTS_DOWN, *leaves(*range(300))]):
        log = Log(in_order)
        shown = log.batch(head)
        assert not shown
        done = len(head) - 1
        while done < COUNT:
            shown += log.batch(leaves(*range(done, min(done + 350, COUNT))), 100)
            done += 350
        assert not shown
        shown = log.batch([FENCED], 200)
        assert texts(shown) == [f"broker 2 started a controlled shutdown: {SUMMARY}", "broker 2 fenced"]
        assert len(shown) == (COUNT if in_order else 22) + 2


def test_batches_of_other_events_between_parts_are_shown_at_once() -> None:
    log = Log()
    first, second, third = parts(350, 350)
    assert not log.batch(first)
    assert texts(log.batch([OTHER]), "topic") == ["topic other created"]
    assert not log.batch(second)
    shown = log.batch([RegisterBrokerRecord(7), *third, FENCED])
    assert texts(shown)[1] == f"broker 2 fenced: {SUMMARY}"


def test_earlier_changes_are_not_effects() -> None:
    """Neither after a pause, nor in another epoch, nor a few, nor elections that keep the ISR."""
    first, last = parts(600)
    moved = [PartitionChangeRecord(index, ORDERS, leader=1) for index in range(0, COUNT, 2)]
    for batch, after_ms, epoch in (
        (first, MAX_PAUSE_MS + 1, 3),
        (first, 0, 4),
        (leaves(*range(MAX_UNDIVIDED)), 0, 3),
        (moved, 0, 3),
    ):
        log = Log()
        shown = [*log.batch(batch), *log.batch([*last, FENCED], after_ms, epoch)]
        texts_ = texts(shown)
        assert len(texts_) == 1 and SUMMARY not in texts_[0], texts_
        assert texts(shown, "partition")


def test_a_part_whose_cause_does_not_follow_is_shown_after_all() -> None:
    log = Log()
    first, _ = parts(600)
    assert not log.batch(first)
    assert log.incidents.is_open
    assert len(log.incidents.end()) == 22
    assert not log.incidents.end()
    other = BrokerRegistrationChangeRecord(1, 0, fenced=1)
    log = Log()
    log.batch(first)
    assert texts(log.batch([other])) == ["broker 1 fenced"]
    assert log.incidents.is_open, "the record of broker 2 may still follow"


def test_only_selected_events_are_shown_and_counted() -> None:
    log = Log(topic="payments")
    first, last = parts(600)
    assert not log.batch(first) and not log.batch([*last, FENCED])
    log = Log(topic="orders")
    log.batch(first)
    shown = log.batch([*last, FENCED])
    assert not texts(shown) and len(shown) == 22
