"""Heartbeats, sessions and controlled shutdown, one rule per test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kraftd.controller.activation import activate
from kraftd.controller.brokers import states as broker_states
from kraftd.controller.brokers.states import (
    begin_heartbeat,
    broker_heartbeat,
    fence_stale_broker,
    leave_partitions,
    renew_session,
)
from kraftd.controller.decision import Decision
from kraftd.ground.refusal import Refusal
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kraftd.messages.partition_record import PartitionRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.unregister_broker_record import UnregisterBrokerRecord
from kraftd.metadata import image as image_module
from kraftd.wire.record_frame import VersionedRecord
from tests.controller.cluster import Cluster, directory, partition


def beat(cluster: Cluster, broker_id: int, now_ms: int = 1_000, **wanted: Any) -> BrokerHeartbeatResponse:
    """Send a broker's heartbeat and apply its records. By default the broker has read the whole log."""
    broker = cluster.image.brokers[broker_id]
    request = BrokerHeartbeatRequest(broker_id, broker.epoch, cluster.image.offset)
    for name, value in wanted.items():
        setattr(request, name, value)
    ctx = replace(cluster.ctx, now_ms=now_ms)
    renew_session(ctx, request)
    decision = broker_heartbeat(ctx, request)
    cluster.apply(decision.records)
    assert decision.after is not None
    decision.after(cluster.image.offset + 1)
    return decision.answer


def expire(cluster: Cluster, now_ms: int) -> list[int]:
    """Fence the stale brokers; return all fenced brokers."""
    for _ in range(10):
        decision = fence_stale_broker(replace(cluster.ctx, now_ms=now_ms))
        cluster.apply(decision.records)
        if decision.after is not None:
            decision.after(cluster.image.offset + 1)
        if not decision.answer:
            break
    return [broker.id for broker in cluster.image.brokers.values() if broker.fenced]


def test_a_broker_is_unfenced_once_it_has_read_its_own_registration() -> None:
    cluster = Cluster().broker(1, fenced=True)
    registered_at = cluster.image.registration_offsets[1]
    early = beat(cluster, 1, current_metadata_offset=registered_at - 1)
    assert (early.is_caught_up, early.is_fenced) == (False, True)
    waiting = beat(cluster, 1, current_metadata_offset=registered_at, want_fence=True)
    assert (waiting.is_caught_up, waiting.is_fenced) == (True, True)
    freed = beat(cluster, 1, current_metadata_offset=registered_at)
    assert (freed.is_caught_up, freed.is_fenced) == (True, False)
    assert cluster.image.brokers[1].is_active


def test_an_unfenced_broker_leads_partitions_without_a_leader() -> None:
    cluster = Cluster().broker(1)
    topic = cluster.topic("t", (1,))
    beat(cluster, 1, want_fence=True)
    assert topic.partitions[0].leader == -1
    beat(cluster, 1)
    assert topic.partitions[0].leader == 1


@pytest.mark.parametrize("epoch", [100, 102])
def test_a_heartbeat_of_another_broker_epoch_is_stale(epoch: int) -> None:
    cluster = Cluster().broker(1)
    with pytest.raises(Refusal, match="STALE_BROKER_EPOCH"):
        beat(cluster, 1, broker_epoch=epoch)


def test_heartbeats_of_unregistered_brokers_are_not_kept() -> None:
    cluster = Cluster().broker(1)
    for broker_id, epoch in ((1, 100), (2, 101), (-1, -1)):
        renew_session(cluster.ctx, BrokerHeartbeatRequest(broker_id, epoch))
    assert cluster.heartbeats.next_deadline_ms() is None


def test_a_heartbeat_of_an_unregistered_broker_is_stale() -> None:
    cluster = Cluster()
    with pytest.raises(Refusal, match="STALE_BROKER_EPOCH: Broker 1 is not registered"):
        broker_heartbeat(cluster.ctx, BrokerHeartbeatRequest(1, 5))


@pytest.mark.parametrize(
    ("wants", "is_fenced", "should_shut_down"),
    [
        ({}, False, False),
        ({"want_fence": True}, True, False),
        ({"want_fence": True, "want_shut_down": True}, True, True),
        ({"want_shut_down": True}, False, False),
    ],
)
def test_a_leader_that_asks_to_be_fenced_is_fenced_and_may_stop_at_once(
    wants: dict[str, bool], is_fenced: bool, should_shut_down: bool
) -> None:
    cluster = Cluster().brokers(1, 2)
    cluster.topic("t", (1, 2))
    answer = beat(cluster, 1, **wants)
    assert (answer.is_fenced, answer.should_shut_down) == (is_fenced, should_shut_down)
    assert cluster.image.brokers[1].fenced == is_fenced


def test_one_heartbeat_may_change_a_brokers_state_and_its_directories() -> None:
    cluster = Cluster().broker(1, fenced=True, directories=3)
    first, second, third = (directory(1, number) for number in range(3))
    beat(cluster, 1, offline_log_dirs=(first,), cordoned_log_dirs=(second,))
    broker = cluster.image.brokers[1]
    assert (broker.fenced, broker.directories) == (False, (second, third))
    assert broker.cordoned_directories == (second,)


def test_an_answer_without_records_waits_for_the_brokers_last_record() -> None:
    cluster = Cluster().broker(1)
    about_it = cluster.image.offset
    cluster.topic("t", (1,))
    request = BrokerHeartbeatRequest(1, 101, cluster.image.offset)
    decision = broker_heartbeat(cluster.ctx, request)
    assert (decision.records, decision.seen_offset) == ([], about_it)


def test_the_records_of_a_brokers_state_may_be_many_batches() -> None:
    cluster = Cluster().brokers(1, 2)
    cluster.topic("t", (1, 2))
    assert broker_heartbeat(cluster.ctx, BrokerHeartbeatRequest(1, 101, 99, want_fence=True)).atomic is False
    cluster.heartbeats.renew(1, 101, 1_000)
    assert fence_stale_broker(replace(cluster.ctx, now_ms=20_000)).atomic is False


@pytest.mark.parametrize(("read_more", "may_stop"), [(-1, False), (0, True)])
def test_a_broker_may_stop_once_the_others_have_read_its_last_change(read_more: int, may_stop: bool) -> None:
    cluster = Cluster().brokers(1, 2)
    cluster.topic("t", (1, 2))
    beat(cluster, 2)
    beat(cluster, 1, want_shut_down=True)
    moved = cluster.image.offset  # the offset of its leadership's move
    cluster.topic("another", (2,))
    beat(cluster, 1, want_shut_down=True)  # the topic's records do not count for its second request
    beat(cluster, 2, current_metadata_offset=moved + read_more)
    assert beat(cluster, 1, want_shut_down=True).should_shut_down == may_stop


def test_after_a_state_change_a_broker_counts_as_having_read_nothing() -> None:
    cluster = Cluster().broker(1)
    beat(cluster, 1, want_fence=True)
    assert cluster.heartbeats.of(cluster.image.brokers[1]).metadata_offset == -1
    beat(cluster, 1, want_fence=True)
    assert cluster.heartbeats.of(cluster.image.brokers[1]).metadata_offset == cluster.image.offset


def test_directories_can_be_cordoned_while_their_broker_shuts_down() -> None:
    cluster = Cluster().brokers(1, 2)
    cluster.topic("t", (1, 2))
    beat(cluster, 2)
    beat(cluster, 1, want_shut_down=True)
    assert not beat(cluster, 1, want_shut_down=True, cordoned_log_dirs=(directory(1),)).should_shut_down
    assert cluster.heartbeats.departures == {}
    beat(cluster, 2)
    assert beat(cluster, 1, want_shut_down=True).should_shut_down


def test_a_broker_that_leads_nothing_may_shut_down_at_once() -> None:
    cluster = Cluster().broker(1)
    answer = beat(cluster, 1, want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert cluster.image.brokers[1].fenced


def test_a_leader_shuts_down_once_every_active_broker_has_read_the_new_leaders() -> None:
    cluster = Cluster().brokers(1, 2, 3)
    topic = cluster.topic("t", (1, 2))
    for broker_id in (2, 3):
        beat(cluster, broker_id)
    assert not beat(cluster, 1, want_shut_down=True).should_shut_down
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert topic.partitions[0].leader == 2
    assert not beat(cluster, 1, want_shut_down=True).should_shut_down
    beat(cluster, 2)
    assert not beat(cluster, 1, want_shut_down=True).should_shut_down  # broker 3 has not
    beat(cluster, 3)
    assert beat(cluster, 1, want_shut_down=True).should_shut_down
    assert cluster.image.brokers[1].fenced


def test_a_broker_may_stop_though_its_only_replica_leaves_no_leader() -> None:
    cluster = Cluster().brokers(1, 2)
    topic = cluster.topic("t", (1,))
    beat(cluster, 2)
    beat(cluster, 1, want_shut_down=True)
    assert (topic.partitions[0].leader, topic.partitions[0].isr) == (-1, (1,))
    beat(cluster, 2)
    assert beat(cluster, 1, want_shut_down=True).should_shut_down


def test_a_new_leader_lets_a_broker_go_on_with_its_shutdown() -> None:
    cluster = Cluster().brokers(1, 2)
    cluster.topic("t", (1, 2))
    beat(cluster, 2)
    beat(cluster, 1, want_shut_down=True)
    started = activate(cluster.ctx, [])
    assert started.records == [] and started.after is not None
    started.after(cluster.image.offset + 1)
    assert beat(cluster, 1, want_shut_down=True).should_shut_down


def test_a_lost_directory_costs_the_isr_of_what_was_in_it__kip858() -> None:
    cluster = Cluster().broker(1, directories=2).broker(2)
    topic = cluster.topic("t", (1, 2))
    lost = topic.partitions[0].directory(1)
    beat(cluster, 1, offline_log_dirs=(lost,))
    assert topic.partitions[0].isr == (2,)
    assert lost not in cluster.image.brokers[1].directories


def test_cordoned_directories_are_noted_when_they_change__kip1066() -> None:
    cluster = Cluster().broker(1)
    beat(cluster, 1, cordoned_log_dirs=(directory(1),))
    assert cluster.image.brokers[1].cordoned_directories == (directory(1),)
    before = cluster.image.offset
    beat(cluster, 1, cordoned_log_dirs=(directory(1),))
    assert cluster.image.offset == before


def test_a_silent_broker_is_fenced_when_its_session_is_over_and_not_before() -> None:
    cluster = Cluster().brokers(1, 2)
    topic = cluster.topic("t", (1, 2))
    beat(cluster, 1, 1_000)
    beat(cluster, 2, 5_000)
    assert cluster.heartbeats.next_deadline_ms() == 10_001
    assert expire(cluster, 10_000) == []
    assert expire(cluster, 10_001) == [1]
    assert topic.partitions[0].leader == 2
    assert cluster.heartbeats.next_deadline_ms() == 14_001


def test_brokers_are_fenced_one_at_a_time_so_that_the_next_sees_it() -> None:
    cluster = Cluster().brokers(1, 2)
    cluster.topic("t", (1, 2))
    beat(cluster, 1, 1_000)
    beat(cluster, 2, 1_000)
    first = fence_stale_broker(replace(cluster.ctx, now_ms=20_000))
    assert first.answer is True
    assert {getattr(record.message, "broker_id", 1) for record in first.records} == {1}
    assert expire(cluster, 20_000) == [1, 2]
    assert cluster.heartbeats.next_deadline_ms() is None


@pytest.mark.parametrize("elr", [False, True])
def test_a_silent_broker_leaves_partitions_in_several_calls_and_is_then_fenced(
    elr: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent() -> Cluster:
        cluster = Cluster(elr=elr).brokers(1, 2, 3)
        for number, replicas in enumerate([(1,), (1, 2), (2, 1), (1, 2, 3), (3, 2, 1), (2, 3)] * 4):
            cluster.topic(f"t{number}", replicas)
        cluster.heartbeats.renew(1, cluster.image.brokers[1].epoch, 1_000)
        return cluster

    at_once, in_parts = silent(), silent()
    before = len(at_once.applied)
    assert expire(at_once, 20_000) == [1]
    monkeypatch.setattr(broker_states, "MAX_PARTITIONS_PER_CALL", 6)
    calls = []
    for _ in range(10):
        ctx = replace(in_parts.ctx, now_ms=20_000)
        decision = fence_stale_broker(ctx)
        calls.append(len(decision.records))
        in_parts.apply(decision.records)
        if decision.after is not None:
            decision.after(in_parts.image.offset + 1)
        if not decision.answer:
            break
    assert calls == [0, 6, 6, 6, 3, 0]  # it finds the partitions; then it moves 20 and fences
    assert in_parts.applied[before:] == at_once.applied[before:]


def with_ten_loaded_topics() -> Cluster:
    """Brokers 1 and 2 after a load of topics whose notes of hosted partitions are not settled yet."""
    cluster = Cluster().brokers(1, 2)
    records: list[object] = []
    for number in range(10):
        topic_id = bytes(15) + bytes([number + 1])
        records += [
            TopicRecord(f"t{number}", topic_id),
            PartitionRecord(0, topic_id, (1, 2), (1, 2), (), (), 1),
        ]
    cluster.image.apply_all(records, cluster.image.offset + 1, 1)
    return cluster


def test_a_loads_notes_are_settled_before_a_silent_broker_is_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(image_module, "_MAX_ENTRIES_SETTLED_PER_CALL", 2)
    cluster = with_ten_loaded_topics()
    cluster.heartbeats.renew(1, cluster.image.brokers[1].epoch, 1_000)
    ctx, calls = replace(cluster.ctx, now_ms=20_000), []
    for _ in range(20):
        decision = fence_stale_broker(ctx)
        calls.append(len(decision.records))
        assert decision.answer
        if decision.records:
            break
    assert calls[-1] == 11
    assert 3 < len(calls) < 7
    assert not any(calls[:-1])


@pytest.mark.parametrize(("partitions", "calls"), [(6, [7]), (7, [0, 6, 2])])
def test_a_broker_leaves_all_partitions_at_once_if_one_call_can_hold_them(
    partitions: int, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_states, "MAX_PARTITIONS_PER_CALL", 6)
    cluster = Cluster().brokers(1, 2)
    cluster.topic("t", *[(1, 2)] * partitions)
    beat(cluster, 1)
    made = []
    for _ in calls:
        decision = fence_stale_broker(replace(cluster.ctx, now_ms=20_000))
        made.append(len(decision.records))
        assert not decision.records or decision.atomic is False
        cluster.apply(decision.records)
        assert decision.after is not None
        decision.after(cluster.image.offset + 1)
    assert made == calls
    assert cluster.image.brokers[1].fenced
    assert cluster.heartbeats.departures == {}
    assert cluster.heartbeats.of(cluster.image.brokers[1]).metadata_offset == -1


def test_partitions_that_do_not_change_do_not_count_towards_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_states, "MAX_PARTITIONS_PER_CALL", 1)
    cluster = Cluster().brokers(1, 2)
    cluster.topic("t", *[partition((2, 1), isr=(2,))] * 10, (1, 2))
    cluster.heartbeats.renew(1, 101, 1_000)
    assert expire(cluster, 20_000) == [1]
    assert cluster.image.led_count(1) == 0


def test_a_silent_broker_whose_heartbeats_resume_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_states, "MAX_PARTITIONS_PER_CALL", 1)
    cluster = Cluster().brokers(1, 2, 3, 4)
    cluster.topic("t", *[(1, 2)] * 3, *[(3, 2)] * 3, *[(4, 2)] * 3)
    for broker_id in (1, 2):
        beat(cluster, broker_id)
    beat(cluster, 3, want_shut_down=True)
    first = fence_stale_broker(replace(cluster.ctx, now_ms=10_001))
    assert first.answer is True and first.records == [] and first.after is not None
    first.after(cluster.image.offset + 1)
    assert set(cluster.heartbeats.departures) == {1, 3}
    cluster.heartbeats.departures[4] = cluster.heartbeats.departures[1]  # the broker unregisters next
    cluster.apply([VersionedRecord(UnregisterBrokerRecord(4, 104), 0)])
    answer = beat(cluster, 1, 10_001)
    assert (answer.is_fenced, answer.should_shut_down) == (False, False)
    for broker_id in (2, 3):
        cluster.heartbeats.renew(broker_id, 100 + broker_id, 10_001)
    none = fence_stale_broker(replace(cluster.ctx, now_ms=10_001))
    assert none.answer is False and none.after is not None
    none.after(cluster.image.offset + 1)
    assert set(cluster.heartbeats.departures) == {3}  # broker 3 shuts down


def test_a_loads_notes_are_settled_before_a_brokers_state_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(image_module, "_MAX_ENTRIES_SETTLED_PER_CALL", 2)
    cluster = with_ten_loaded_topics()
    deciding = begin_heartbeat(cluster.ctx, BrokerHeartbeatRequest(1, 101, 99, want_fence=True))
    assert not isinstance(deciding, Decision)
    pauses = 0
    while next(deciding, deciding) is None:
        pauses += 1
    assert 3 < pauses < 7


def test_no_stopping_broker_ends_before_it_has_left_its_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_states, "MAX_PARTITIONS_PER_CALL", 1)
    cluster = Cluster().brokers(1, 2)
    cluster.topic("t", (1, 2), *[(2, 1)] * 3)
    for broker_id in (1, 2):
        beat(cluster, broker_id, want_shut_down=True)
    cluster.apply(leave_partitions(cluster.ctx).records)
    assert cluster.image.led_count(1) == 0
    assert not beat(cluster, 1, want_shut_down=True).should_shut_down


@pytest.mark.parametrize("elr", [False, True])
def test_a_stopping_broker_leaves_partitions_in_several_calls(
    elr: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping() -> Cluster:
        cluster = Cluster(elr=elr).brokers(1, 2, 3)
        for number, replicas in enumerate([(1,), (1, 2), (2, 1), (1, 2, 3), (3, 2, 1), (2, 3)] * 4):
            cluster.topic(f"t{number}", replicas)
        assert not beat(cluster, 1, want_shut_down=True).should_shut_down
        return cluster

    at_once = stopping()
    before = len(Cluster(elr=elr).brokers(1, 2, 3).applied)
    monkeypatch.setattr(broker_states, "MAX_PARTITIONS_PER_CALL", 6)
    in_parts = stopping()
    assert len(in_parts.applied) < len(at_once.applied)
    calls = []
    for _ in range(10):
        assert not beat(in_parts, 1, want_shut_down=True).should_shut_down
        decision = leave_partitions(in_parts.ctx)
        assert decision.answer is (not in_parts.heartbeats.departures[1].is_over)
        assert decision.records == [] or decision.atomic is False
        calls.append(len(decision.records))
        in_parts.apply(decision.records)
        if decision.after is not None:
            decision.after(in_parts.image.offset + 1)
        if not decision.answer:
            break
    assert calls == [6, 6, 6, 2, 0]
    beat(in_parts, 2)
    departed_offset = in_parts.image.offset
    noted = in_parts.heartbeats.of(in_parts.image.brokers[1])
    assert (noted.metadata_offset, noted.shutdown_offset) == (departed_offset, departed_offset)
    assert in_parts.applied[before:] == at_once.applied[before:]
    for broker_id in (2, 3):
        assert not beat(in_parts, 1, want_shut_down=True).should_shut_down
        beat(in_parts, broker_id)
    last = beat(in_parts, 1, want_shut_down=True)
    assert last.should_shut_down
    assert in_parts.image.brokers[1].fenced


def test_a_leaving_broker_also_leaves_partitions_that_it_gets_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_states, "MAX_PARTITIONS_PER_CALL", 2)
    cluster = Cluster().brokers(1, 2, 3)
    for number in range(4):
        cluster.topic(f"t{number}", (1, 2))
    beat(cluster, 1, want_shut_down=True)
    departure = cluster.heartbeats.departures[1]
    decision = leave_partitions(cluster.ctx)
    cluster.apply(decision.records)
    assert decision.after is not None
    decision.after(cluster.image.offset + 1)
    at = len(cluster.applied)
    late = cluster.topic("late", (1, 2))
    departure.note(cluster.applied[at:])
    while not departure.is_over:
        decision = leave_partitions(cluster.ctx)
        cluster.apply(decision.records)
        assert decision.after is not None
        decision.after(cluster.image.offset + 1)
    assert late.partitions[0].leader == 2
    assert cluster.image.led_count(1) == 0


def test_the_end_of_an_earlier_registrations_session_has_no_effect() -> None:
    cluster = Cluster().broker(1)
    cluster.heartbeats.renew(1, 7, 1_000)
    assert expire(cluster, 20_000) == []


def test_a_new_leader_gives_unfenced_brokers_a_whole_session() -> None:
    cluster = Cluster().broker(1).broker(2, fenced=True)
    cluster.heartbeats.renew(1, 101, 1_000)
    started = activate(replace(cluster.ctx, now_ms=9_000), [])
    assert started.after is not None
    started.after(cluster.image.offset + 1)
    assert cluster.heartbeats.next_deadline_ms() == 18_001
    assert expire(cluster, 18_001) == [1, 2]
