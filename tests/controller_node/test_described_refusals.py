"""DescribeQuorum names the refused nodes, even if they are very many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.messages import begin_quorum_epoch_request as begin
from kraftd.messages import end_quorum_epoch_request as end
from kraftd.messages import vote_request as vote
from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.harness import Harness

DESCRIBE = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])


def test_the_quorum_is_described_with_any_number_of_refused_nodes(tmp_path: Path) -> None:
    harness = Harness(tmp_path).start()
    for broker_id in range(400):
        request = BrokerRegistrationRequest(broker_id, "of another cluster 𝄞" * 10)
        answer = harness.ask(ApiKey.BROKER_REGISTRATION, 4, request)
        assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    answer = harness.ask(ApiKey.DESCRIBE_QUORUM, 2, DESCRIBE)
    assert (answer.error_code, answer.topics[0].partitions[0].leader_id) == (0, 100)
    lines = answer.error_message.splitlines()
    assert len(answer.error_message) < 8_100
    assert lines[-1].endswith("more") and len(lines) > 5


ELECTIONS: tuple[tuple[ApiKey, int, Any], ...] = (
    (
        ApiKey.VOTE,
        2,
        vote.VoteRequest("other", 100, [vote.TopicData(METADATA_TOPIC, [vote.PartitionData(0, 1, 7)])]),
    ),
    (
        ApiKey.BEGIN_QUORUM_EPOCH,
        1,
        begin.BeginQuorumEpochRequest(
            "other", 100, [begin.TopicData(METADATA_TOPIC, [begin.PartitionData(0, bytes(16), 7, 1)])]
        ),
    ),
    (
        ApiKey.END_QUORUM_EPOCH,
        1,
        end.EndQuorumEpochRequest("other", [end.TopicData(METADATA_TOPIC, [end.PartitionData(0, 7, 1)])]),
    ),
)


@pytest.mark.parametrize(("key", "version", "request_"), ELECTIONS, ids=lambda one: getattr(one, "name", ""))
def test_a_refused_node_is_listed_by_its_own_id_not_by_the_receivers(
    key: ApiKey, version: int, request_: Any, tmp_path: Path
) -> None:
    harness = Harness(tmp_path).start()
    harness.ask(key, version, request_)
    answer = harness.ask(ApiKey.DESCRIBE_QUORUM, 2, DESCRIBE)
    assert answer.error_message.startswith("node 7 at ")
