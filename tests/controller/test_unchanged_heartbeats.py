"""The short way of a heartbeat that changes nothing answers and notes as the long way does."""

from __future__ import annotations

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from kraftd.controller.brokers.heartbeats import NO_OFFSET, Heartbeat
from kraftd.controller.brokers.states import broker_heartbeat, unchanged
from kraftd.ground.refusal import Refusal
from kraftd.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from tests.controller.cluster import Cluster, directory

EPOCH = 101  # of broker 1 of a Cluster

heartbeats = st.none() | st.builds(
    Heartbeat, st.sampled_from((EPOCH - 1, EPOCH)), st.integers(-1, 9), st.sampled_from((NO_OFFSET, 0, 7))
)
requests = st.builds(
    BrokerHeartbeatRequest,
    st.sampled_from((1, 1, 1, 2)),
    st.sampled_from((EPOCH, EPOCH, EPOCH, EPOCH - 1)),
    st.integers(-1, 9),
    want_fence=st.sampled_from((False, False, False, True)),
    want_shut_down=st.sampled_from((False, False, False, True)),
    offline_log_dirs=st.sampled_from(((), (), (directory(1),))),
    cordoned_log_dirs=st.sampled_from((None, None, (), (directory(1),))),
)


@given(heartbeats, requests, st.booleans())
def test_both_ways_of_a_heartbeat_agree(
    before: Heartbeat | None, request: BrokerHeartbeatRequest, is_fenced: bool
) -> None:
    short, long = Cluster().broker(1, fenced=is_fenced), Cluster().broker(1, fenced=is_fenced)
    if before is not None:
        for cluster in (short, long):
            cluster.heartbeats._heartbeats[1] = deepcopy(before)
    quick = unchanged(short.ctx, request)
    if quick is None:
        assert short.heartbeats._heartbeats.get(1) == before
        assert _changes(long, request) or before is None or before.broker_epoch != EPOCH
        return
    decision = broker_heartbeat(long.ctx, request)
    assert (quick.answer, quick.seen_offset, []) == (decision.answer, decision.seen_offset, decision.records)
    assert decision.after is not None
    decision.after(9)
    assert short.heartbeats._heartbeats == long.heartbeats._heartbeats


def _changes(cluster: Cluster, request: BrokerHeartbeatRequest) -> bool:
    """Return whether the long way does anything but note that the broker stays active."""
    broker = cluster.image.brokers.get(request.broker_id)
    if broker is None or broker.fenced or cluster.heartbeats.of(broker).is_shutting_down:
        return True
    try:
        decision = broker_heartbeat(cluster.ctx, request)
    except Refusal:
        return True
    return bool(decision.records) or request.want_shut_down or request.cordoned_log_dirs is not None
