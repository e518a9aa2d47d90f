"""Arbitrary requests and responses that can be decoded are answered once or ignored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.fetch.purgatory import Purgatory
from kraftd.ground.effect import Effect
from kraftd.raft.core import RaftCore
from kraftd.raft.effects import Respond, RespondRecords, RespondSnapshot, Send
from kraftd.raft.events import RecordsSynced, RequestReceived, ResponseReceived, Started
from kraftd.raft.replica import ConsensusBroken
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.codec import encode_bytes
from kraftd.wire.message import Message
from tests.raft.world import LISTENER, START_MS, VERSIONS, SeededRandomness, World, directory_id
from tests.wire.strategies import messages

REQUESTS = sorted(set(VERSIONS) - {"ApiVersions"})
SMALL = st.sampled_from([-(1 << 31), -2, -1, 0, 0, 1, 1, 1, 2, 3, 4, 5, 1000, (1 << 31) - 1])
UUIDS = st.sampled_from([bytes(16), METADATA_TOPIC_ID, directory_id(1), directory_id(2), directory_id(7)])
SLOW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def plausible(draw: Any, message: Any) -> None:
    """Make a drawn message plausible: the right cluster and topic, and numbers that occur."""
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name == "cluster_id":
            message.cluster_id = draw(st.sampled_from(["cluster", "cluster", "cluster", "other", None]))
        elif name in ("topic", "topic_name", "name"):
            setattr(message, name, draw(st.sampled_from([METADATA_TOPIC, METADATA_TOPIC, "x"])))
        elif name == "error_code":
            message.error_code = draw(st.sampled_from([0, 0, 0, 0, 3, 6, 8, 35, 42, 74, 75, 98, 99, 125]))
        elif isinstance(value, bool) or name == "unknown_tags":
            continue
        elif isinstance(value, int):
            setattr(message, name, draw(SMALL))
        elif isinstance(value, bytes) and len(value) == 16 and name.endswith("_id"):
            setattr(message, name, draw(UUIDS))
        elif isinstance(value, Message):
            plausible(draw, value)
        elif isinstance(value, list):
            if name in ("topics", "partitions", "responses") and draw(st.integers(0, 9)):
                del value[1:]
            for one in value:
                plausible(draw, one)


def leading_core() -> RaftCore:
    world = World()
    world.add_voters([1])
    world.start(1)
    world.run(10)
    return world.core(1)


def answers(effects: list[Effect], request_id: object) -> list[Effect]:
    kinds = Respond | RespondRecords | RespondSnapshot
    return [one for one in effects if isinstance(one, kinds) and one.request_id is request_id]


@pytest.mark.parametrize("name", REQUESTS)
@SLOW
@given(data=st.data())
def test_any_request_is_answered_once_or_parked(name: str, data: st.DataObject) -> None:
    core = leading_core()
    for _ in range(3):
        version = data.draw(st.integers(13 if name == "Fetch" else 0, VERSIONS[name]))
        message = data.draw(messages(f"{name}Request", version))
        plausible(data.draw, message)
        request_id = object()
        effects = core.step(RequestReceived(request_id, message, version, LISTENER), START_MS + 100)
        found = answers(effects, request_id)
        assert len(found) <= 1
        if not found:
            assert name in ("Fetch", "AddRaftVoter", "RemoveRaftVoter")
        for one in found:
            assert isinstance(one, Respond | RespondRecords | RespondSnapshot)
            encode_bytes(one.message, one.version)


@pytest.mark.parametrize("name", ["Fetch", "FetchSnapshot", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch"])
@SLOW
@given(data=st.data())
def test_any_response_is_processed_or_ignored(name: str, data: st.DataObject) -> None:
    """Also if it answers another kind of request; only a truncation of committed records ends the process."""
    world = World()
    world.add_voters([1, 2])
    node = world.nodes[2]
    core = RaftCore(node.config, node.disk.durable_state(), SeededRandomness(1), Purgatory(), Purgatory())
    now_ms = START_MS
    effects = core.step(Started(), now_ms)
    for _ in range(4):
        sends = [one for one in effects if isinstance(one, Send)]
        if not sends:
            now_ms = core.deadline_ms() or now_ms + 10_000
            effects = core.step(RecordsSynced(core.log_end_offset), now_ms)
            continue
        message = data.draw(messages(f"{name}Response", VERSIONS[name]))
        plausible(data.draw, message)
        try:
            effects = core.step(ResponseReceived(sends[0].send_id, message), now_ms)
        except ConsensusBroken as error:
            assert "truncate" in str(error)
            return
