"""The leader's memory of heartbeats: sessions to the millisecond, registrations distinguished by epoch."""

from __future__ import annotations

from kraftd.controller.brokers.departures import Departure
from kraftd.controller.brokers.heartbeats import EVERY_OFFSET, NO_OFFSET, BrokerHeartbeats
from kraftd.controller.brokers.states import renew_session
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from kraftd.metadata.state import BrokerState
from tests.controller.cluster import Cluster

SESSION_MS = 9_000


def heartbeats_of(cluster: Cluster) -> tuple[BrokerHeartbeats, dict[int, BrokerState]]:
    return BrokerHeartbeats(SESSION_MS), cluster.image.brokers


def test_a_session_is_valid_to_its_last_millisecond_and_stale_one_later() -> None:
    heartbeats, _ = heartbeats_of(Cluster())
    assert (heartbeats.stale(1 << 40), heartbeats.next_deadline_ms()) == (None, None)
    heartbeats.renew(1, 101, 5_000)
    ends_ms = 5_000 + SESSION_MS
    assert heartbeats.next_deadline_ms() == ends_ms + 1
    assert heartbeats.has_valid_session(1, 101, ends_ms)
    assert heartbeats.stale(ends_ms) is None
    assert not heartbeats.has_valid_session(1, 101, ends_ms + 1)
    assert heartbeats.stale(ends_ms + 1) == (1, 101)
    for broker_id, epoch in ((1, 100), (2, 101)):
        assert not heartbeats.has_valid_session(broker_id, epoch, 5_000)


def test_the_broker_that_was_silent_for_longest_is_stale_first() -> None:
    heartbeats, _ = heartbeats_of(Cluster())
    for broker_id in (1, 2):
        heartbeats.renew(broker_id, 100, broker_id)
    heartbeats.renew(1, 100, 3)
    late_ms = 3 * SESSION_MS
    assert heartbeats.stale(late_ms) == (2, 100)
    heartbeats.end_session(2, 99)  # of another registration
    assert heartbeats.stale(late_ms) == (2, 100)
    heartbeats.end_session(2, 100)
    assert heartbeats.stale(late_ms) == (1, 100)
    heartbeats.end_session(1, 100)
    heartbeats.end_session(1, 100)
    assert heartbeats.stale(late_ms) is None


def test_silence_is_the_time_since_the_last_heartbeat_up_to_a_session() -> None:
    heartbeats, brokers = heartbeats_of(Cluster().broker(1).broker(2, fenced=True))
    assert heartbeats.silent_ms(1, 5_000) == SESSION_MS
    heartbeats.heard(1, 5_000)
    assert [heartbeats.silent_ms(1, now_ms) for now_ms in (5_000, 5_001, 1 << 40)] == [0, 1, SESSION_MS]
    heartbeats.start(brokers.values(), 6_000)  # as with Kafka's leader, for fenced brokers too
    assert [heartbeats.silent_ms(one, 6_002) for one in (1, 2)] == [2, 2]


def test_silence_ends_with_a_heartbeat_of_any_epoch_and_with_the_first_registration() -> None:
    cluster = Cluster().broker(1)
    now_ms = cluster.ctx.now_ms
    renew_session(cluster.ctx, BrokerHeartbeatRequest(1, 12_345, 0))
    renew_session(cluster.ctx, BrokerHeartbeatRequest(9, 1, 0))  # not registered
    assert [cluster.heartbeats.silent_ms(one, now_ms + 1) for one in (1, 9)] == [1, SESSION_MS]


def test_a_new_leader_forgets_and_gives_unfenced_brokers_a_whole_session() -> None:
    heartbeats, brokers = heartbeats_of(Cluster().brokers(1, 2).broker(3, fenced=True))
    heartbeats.renew(3, brokers[3].epoch, 1)
    heartbeats.note(brokers[1], 7, NO_OFFSET)
    heartbeats.departures[1] = Departure(1, brokers[1].epoch, [])
    heartbeats.start(brokers.values(), 500)
    valid = [
        broker_id
        for broker_id, broker in brokers.items()
        if heartbeats.has_valid_session(broker_id, broker.epoch, 500 + SESSION_MS)
    ]
    assert valid == [1, 2]
    assert heartbeats.of(brokers[1]).metadata_offset == NO_OFFSET
    assert heartbeats.departure_of(brokers[1]) is None


def test_heartbeats_of_an_older_registration_do_not_count_for_a_newer_one() -> None:
    cluster = Cluster().broker(1)
    heartbeats, brokers = heartbeats_of(cluster)
    old = brokers[1]
    assert repr(heartbeats.of(old)) == "<Heartbeat of epoch 101, read to -1>"
    heartbeats.note(old, 7, 0)
    heartbeats.departures[1] = leaving = Departure(1, old.epoch, [])
    assert repr(heartbeats.of(old)) == "<Heartbeat of epoch 101, read to 7, shuts down at 0>"
    assert heartbeats.departure_of(old) is leaving
    cluster.broker(1, epoch=200)
    new = brokers[1]
    assert heartbeats.of(new).broker_epoch == 200
    assert (heartbeats.of(new).metadata_offset, heartbeats.of(new).is_shutting_down) == (NO_OFFSET, False)
    assert heartbeats.departure_of(new) is None
    heartbeats.forget(1)
    heartbeats.forget(1)  # a second time changes nothing
    assert heartbeats.of(old).metadata_offset == NO_OFFSET
    assert heartbeats.departures == {}


def test_the_lowest_offset_is_that_of_active_brokers() -> None:
    heartbeats, brokers = heartbeats_of(Cluster().broker(1, fenced=True).brokers(2, 3, 4))
    assert heartbeats.lowest_active_offset({}) == EVERY_OFFSET == 2**63 - 1
    assert heartbeats.lowest_active_offset(brokers) == NO_OFFSET
    for broker_id, offset, shutdown_offset in (
        (1, 1, NO_OFFSET),
        (2, 2, 0),
        (3, 5, NO_OFFSET),
        (4, 4, NO_OFFSET),
    ):
        heartbeats.note(brokers[broker_id], offset, shutdown_offset)
    assert heartbeats.lowest_active_offset(brokers) == 4
    heartbeats.note(brokers[4], 6, NO_OFFSET)
    assert heartbeats.lowest_active_offset(brokers) == 5
