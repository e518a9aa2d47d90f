"""A daemon whose log is damaged while it runs serves no damaged data and continues otherwise."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraftd.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftd.types import METADATA_TOPIC, METADATA_TOPIC_ID
from kraftd.wire.batch import BatchHeader, parse_header
from kraftd.wire.error_code import ErrorCode
from testkit.process import free_port, wait_until
from tests.runtime.daemon_process import Client, DaemonProcess

OTHER_ID = "cK1bxUW_TcqMIFcIoUDLhg"
SEGMENT = "data/__cluster_metadata-0/00000000000000000000.log"


def fetch_from(first: BatchHeader, epoch: int) -> FetchRequest:
    """Fetch everything behind the first batch of the log."""
    partition = FetchPartition(0, epoch, first.next_offset, first.leader_epoch)
    topic = FetchTopic(METADATA_TOPIC, METADATA_TOPIC_ID, [partition])
    return FetchRequest(replica_state=ReplicaState(-1), max_bytes=1 << 20, topics=[topic])


def test_a_fetch_of_damaged_batches_closes_the_connection_and_is_logged(
    tmp_path: Path,
) -> None:
    daemon = DaemonProcess(tmp_path).format().start()
    try:
        daemon.kraftd("snapshot", str(daemon.properties))
        assert daemon.stop() == 0
        daemon.start()  # from now on, records before the snapshot are read from the file
        data = bytearray((tmp_path / SEGMENT).read_bytes())
        first = parse_header(data)
        client = daemon.client()
        partition = client.call(fetch_from(first, 0), 17).responses[0].partitions[0]
        epoch = partition.current_leader.leader_epoch
        answer = client.call(fetch_from(first, epoch), 17).responses[0].partitions[0]
        assert not answer.error_code and answer.records
        data[first.size_bytes + 80] ^= 4
        (tmp_path / SEGMENT).write_bytes(data)
        with pytest.raises(ConnectionError):
            client.call(fetch_from(first, epoch), 17)
        assert daemon.client().api_versions().finalized_features_epoch >= 0
        lines = [line for line in daemon.lines() if "the log could not be read" in str(line)]
        assert lines and f"{SEGMENT}, byte {first.size_bytes}" in str(lines[0])
    finally:
        daemon.stop(signal.SIGKILL)


def test_a_time_looked_up_in_damaged_batches_is_refused_and_the_process_lives(tmp_path: Path) -> None:
    daemon, port = DaemonProcess(tmp_path), free_port()
    text = daemon.properties.read_text()
    text = text.replace("\nlisteners=", f"\nlisteners=CLIENTS://127.0.0.1:{port},")
    text = text.replace("map=", "map=CLIENTS:PLAINTEXT,")
    daemon.properties.write_text(f"{text}kraftd.client.listener.names=CLIENTS\n")
    daemon.format().start()
    try:
        daemon.kraftd("snapshot", str(daemon.properties))
        assert daemon.stop() == 0
        daemon.start()
        data = bytearray((tmp_path / SEGMENT).read_bytes())
        first = parse_header(data)
        data[first.size_bytes + 80] ^= 4
        (tmp_path / SEGMENT).write_bytes(data)
        client = Client(port)
        request = ListOffsetsRequest(
            -1, topics=[ListOffsetsTopic(METADATA_TOPIC, [ListOffsetsPartition(0, -1, 0)])]
        )
        (answer,) = client.call(request, 7).topics[0].partitions
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert client.api_versions().error_code == 0
        (logged,) = [line for line in daemon.lines() if line["event"] == "a request failed"]
        assert "CorruptStorage" in logged["exception"] and "LIST_OFFSETS" in logged["call"]
        assert daemon.stop() == 0
    finally:
        daemon.stop(signal.SIGKILL)


def forget_own_directory(partition: Path) -> None:
    """Remove all that proves the directory id was changed; a replaced disk leaves none of it."""
    (partition / "kraftd-last-start.json").unlink()
    state = partition / "quorum-state"
    state.write_text(
        json.dumps(json.loads(state.read_text()) | {"votedId": -1, "votedDirectoryId": "A" * 22})
    )


def test_a_directory_whose_id_is_not_the_voters_is_reported(tmp_path: Path) -> None:
    daemon = DaemonProcess(tmp_path).format().start()
    try:
        assert daemon.stop() == 0
        path = tmp_path / "data" / "meta.properties"
        lines = path.read_text().splitlines()
        [own] = [line for line in lines if line.startswith("directory.id=")]
        path.write_text("\n".join(f"directory.id={OTHER_ID}" if line == own else line for line in lines))
        forget_own_directory(tmp_path / "data" / "__cluster_metadata-0")
        daemon.begin()
        wait_until(lambda: any("does not vote" in line["event"] for line in daemon.lines()), "it is logged")
        [logged] = [line for line in daemon.lines() if "does not vote" in line["event"]]
        assert (logged["directory_id"], f"directory.id={logged['voter_directory_id']}") == (OTHER_ID, own)
        assert daemon.stop() == 0
    finally:
        daemon.stop(signal.SIGKILL)
