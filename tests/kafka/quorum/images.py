"""The metadata of a quorum's directories, as controllers and tools of each kind read it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from kraftd.log.disk import RealDisk
from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.register_broker_record import RegisterBrokerRecord
from kraftd.messages.register_controller_record import RegisterControllerRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, parse_checkpoint_name
from kraftd.wire.record_frame import VersionedRecord, decode_record, encode_record
from testkit.logs import DirectoryLog, read_log
from testkit.node import kraftd_command
from testkit.quorum import Quorum
from tests.kafka.shell import metadata_shell

# So often that every controller makes some in a test; their records are compared with kraftd's image.
SNAPSHOTS_OFTEN = {"metadata.log.max.record.bytes.between.snapshots": 20_000}
TOPIC = 2  # a resource type of configs
_NOTHING = (None, "", [], {}, 0, -1, False)


def whole_log(quorum: Quorum) -> DirectoryLog:
    """The longest log that begins at offset 0; one of the logs must contain the whole history."""
    logs = [read_log(controller.data) for controller in quorum.controllers.values()]
    longest = min(logs, key=lambda log: (log.start, -log.end))
    assert longest.start == 0, logs
    return replace(longest, snapshot=None)


def assert_equal_snapshots(quorum: Quorum) -> int:
    """Check that every snapshot equals kraftd's replay of the log up to its end; return their number.

    Some are of Kafka's controllers: thus the images of both kinds are equal.
    """
    count = 0
    log = whole_log(quorum)
    for controller in quorum.controllers.values():
        for path in sorted(controller.metadata_dir.glob("*.checkpoint")):
            snapshot_id = parse_checkpoint_name(path.name)
            if snapshot_id is None or snapshot_id.offset == 0:
                continue
            replayed = _comparable(log.image(snapshot_id.offset).records())
            assert _records_of(path) == replayed, f"{controller}: {path.name}"
            count += 1
    return count


def _records_of(checkpoint: Path) -> list[bytes]:
    reader = CheckpointReader(RealDisk(), str(checkpoint))
    try:
        return _comparable(decode_record(value) for values in reader.values() for value in values)
    finally:
        reader.close()


def _comparable(records: Iterable[VersionedRecord]) -> list[bytes]:
    """Records sorted, and the features in each sorted.

    Configs of topics that do not exist are left out. Kafka's image keeps those of a topic that was configured
    and deleted within one read. After a start it reads a whole log at once.
    """
    records = list(records)
    topics = {one.message.name for one in records if isinstance(one.message, TopicRecord)}
    found = []
    for record in records:
        message = record.message
        if isinstance(message, ConfigRecord) and message.resource_type == TOPIC:
            if message.resource_name not in topics:
                continue
        elif isinstance(message, RegisterBrokerRecord | RegisterControllerRecord):
            message.features.sort(key=lambda feature: feature.name)
        found.append(encode_record(record))
    return sorted(found)


def assert_equal_dumps(quorum: Quorum, node_id: int) -> int:
    """Check that kraftd's dump and Kafka's dump-log show the same records of a log; return their number."""
    ours = list(_dumped_by_kraftd(quorum.controllers[node_id].metadata_dir))
    theirs = list(_dumped_by_kafka(quorum.dumped(node_id)))
    for our_record, their_record in zip(ours, theirs, strict=True):
        assert our_record == their_record
    return len(ours)


def _dumped_by_kraftd(directory: Path) -> Iterator[tuple[int, str, Any]]:
    """(offset, type, fields) of each metadata record."""
    segments = sorted(directory.glob("*.log"))
    done = subprocess.run(
        kraftd_command("dump", "--show-secrets", *segments), capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        shown = json.loads(line)
        if shown["kind"] == "record":
            yield shown["offset"], _plain_name(shown["type"]), _plain(shown["data"])


def _dumped_by_kafka(lines: list[str]) -> Iterator[tuple[int, str, Any]]:
    for line in lines:
        head, found, payload = line.partition(" payload: ")
        if found:
            shown = json.loads(payload)
            yield int(head.split()[2]), _plain_name(shown["type"]), _plain(shown["data"])


def _plain(value: Any) -> Any:
    """Fields by their names in lower case, without empty ones: Kafka leaves out some of them."""
    if isinstance(value, dict):
        fields = {_plain_name(name): _plain(field) for name, field in value.items()}
        return {
            name: field for name, field in fields.items() if field not in (None, "", [], {}, 0, -1, False)
        }
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value


def _plain_name(name: str) -> str:
    return name.replace("_", "").lower()


def assert_shown_by_kafkas_shell(quorum: Quorum, node_id: int, topics: set[str], scratch: Path) -> None:
    """Check that Kafka's metadata-shell loads a log and shows just these topics."""
    [segment] = quorum.controllers[node_id].metadata_dir.glob("*.log")
    metadata_shell(
        segment,
        scratch,
        "ls",
        "/image/topics/byName",
        expected=lambda words: {word for word in words if not word.startswith("__")} == topics,
    )
