"""The first batch of a quorum's first epoch, byte for byte as an Apache Kafka 4.3.1 controller wrote it."""

from __future__ import annotations

import base64

from kraftd.fetch.purgatory import Purgatory
from kraftd.raft.config import DurableState, RaftConfig
from kraftd.raft.leader import start_of_epoch_records
from kraftd.raft.log_view import LogView
from kraftd.raft.quorum.history import ControlRecordHistory
from kraftd.raft.replica import Replica
from kraftd.wire.batch import build_control_batch, iter_batches
from tests.raft.world import SeededRandomness, bootstrap_batch

# From a Fetch answer: LeaderChange (102 leads, granted by 102 and 100), KRaftVersion 1, Voters 100 to 102.
FIRST_BATCH = base64.b64decode(
    "AAAAAAAAAAAAAAEYAAAAAQKVBEYvACAAAAACAAABofw6BVIAAAGh/DoFUv//////////////////AAAAA1gAAAAIAAAAAkQAAAAAAGYEAAAAZAAA"
    "AABlAAAAAGYAAwAAAGYAAAAAZAAAAB4AAAIIAAAABQoAAAABAADQAgAABAgAAAAGugIAAAQAAABkF52SxOfHRpulzgid0rNpCwILQ09OVFJPTExF"
    "UgoxMjcuMC4wLjGEVQAAAAABAAAAAABloW1mE2iOTdaW1kE1FW0vJwILQ09OVFJPTExFUgoxMjcuMC4wLjGGfQAAAAABAAAAAABmgAkVMwaXSta7"
    "GXqBb/O6EwILQ09OVFJPTExFUgoxMjcuMC4wLjGH+QAAAAABAAAAAA=="
)


def test_first_batch_is_what_apache_kafka_writes_for_the_same_voters__kip853() -> None:
    (batch,) = iter_batches(FIRST_BATCH)
    history = ControlRecordHistory()
    history.read(FIRST_BATCH)
    leader = history.voters.get(102)
    assert leader is not None and leader.key.directory_id is not None
    bootstrap = ControlRecordHistory()
    bootstrap.read(bootstrap_batch(history.voters), at_offset=-1)
    replica = Replica(
        RaftConfig(102, leader.key.directory_id, "cluster", leader.listeners),
        DurableState(None, LogView(), bootstrap),
        SeededRandomness(0),
        Purgatory(),
        Purgatory(),
    )
    records = start_of_epoch_records(replica, granting=[102, 100])
    assert build_control_batch(records, 0, 1, batch.header.base_timestamp_ms) == FIRST_BATCH
