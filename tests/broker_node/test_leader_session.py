"""The fetch session of a follower with its leader: what each request names (KIP-227)."""

from __future__ import annotations

import pytest

from kraftd.broker_node.fetching.leader_session import LeaderSession
from kraftd.messages.fetch_request import FetchPartition

TOPIC = bytes(15) + b"\x01"
KEY = (TOPIC, 0)
PLACE = {"current_leader_epoch": 3, "fetch_offset": 10, "last_fetched_epoch": 2, "log_start_offset": 4}


def wanted(**changed: int) -> FetchPartition:
    return FetchPartition(0, **{**PLACE, "partition_max_bytes": 100, **changed})


def opened() -> LeaderSession:
    """A session whose first request has named the partition."""
    session = LeaderSession()
    session.request({KEY: wanted()})
    session.answered(7)
    return session


def test_a_partition_without_a_change_is_not_named_again__kip227() -> None:
    assert opened().request({KEY: wanted()}) == ([], [])


@pytest.mark.parametrize("field", [*PLACE, "partition_max_bytes"])
def test_a_partition_is_named_again_when_what_is_asked_of_it_changes__kip227(field: str) -> None:
    session, changed = opened(), wanted(**{field: 99})
    topics, forgotten = session.request({KEY: changed})
    assert [(one.topic_id, one.partitions) for one in topics] == [(TOPIC, [changed])] and not forgotten


def test_a_partition_is_forgotten_once__kip227() -> None:
    session = opened()
    topics, forgotten = session.request({KEY: None})
    assert not topics and [(one.topic_id, one.partitions) for one in forgotten] == [(TOPIC, (0,))]
    assert session.request({KEY: None}) == ([], [])


def test_after_an_error_all_are_named_in_a_session_that_replaces_the_former__kip227() -> None:
    session = opened()
    session.failed()
    assert (session.id, session.epoch, session.is_new) == (7, 0, True)
    topics, _ = session.request({KEY: wanted()})
    assert [len(one.partitions) for one in topics] == [1]
    session.failed(is_unknown=True)
    assert (session.id, session.epoch) == (0, 0)
