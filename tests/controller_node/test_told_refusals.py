"""DescribeQuorum tells which nodes were refused, however many they are."""

from __future__ import annotations

from pathlib import Path

from kraftd.messages.broker_registration_request import BrokerRegistrationRequest
from kraftd.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kraftd.types import METADATA_TOPIC
from kraftd.wire.api import ApiKey
from kraftd.wire.error_code import ErrorCode
from tests.controller_node.house import House

DESCRIBE = DescribeQuorumRequest([TopicData(METADATA_TOPIC, [PartitionData(0)])])


def test_the_quorum_is_described_however_many_nodes_were_refused(tmp_path: Path) -> None:
    house = House(tmp_path).start()
    for broker_id in range(400):
        request = BrokerRegistrationRequest(broker_id, "of another cluster 𝄞" * 10)
        answer = house.ask(ApiKey.BROKER_REGISTRATION, 4, request)
        assert answer.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    told = house.ask(ApiKey.DESCRIBE_QUORUM, 2, DESCRIBE)
    assert (told.error_code, told.topics[0].partitions[0].leader_id) == (0, 100)
    lines = told.error_message.splitlines()
    assert len(told.error_message) < 8_100
    assert lines[-1].endswith("more") and len(lines) > 5
