"""The ends of transactions, written into partitions that a broker leads."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftd.messages.write_txn_markers_request import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraftd.wire.api import ApiKey
from tests.broker_node.harness import BrokerHarness

PARTITIONS = 60


def test_very_many_markers_are_written_in_several_callbacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = BrokerHarness(tmp_path).run()
    harness.create_topic("t", PARTITIONS)
    harness.pass_time(100)
    logs = [harness.directories.logs["t", index] for index in range(PARTITIONS)]
    marker = WritableTxnMarker(7, 0, True, [WritableTxnMarkerTopic("t", (*range(PARTITIONS), 999))], 0)
    with monkeypatch.context() as patched:
        patched.setattr(harness.timer, "run_soon", lambda: None)
        slot = harness.client_send(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest([marker]))
        assert 0 < sum(log.log_end for log in logs) < PARTITIONS / 2
    harness.pass_time(100)
    assert [log.log_end for log in logs] == [1] * PARTITIONS
    ((topic,),) = [one.topics for one in harness.response(slot).markers]
    errors = {row.partition_index: row.error_code for row in topic.partitions}
    assert errors == {**dict.fromkeys(range(PARTITIONS), 0), 999: 3}
