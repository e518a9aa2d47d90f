"""A start reads the log once, for recovery, the durable state and the replay together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kraftd.log.memory_disk import Choose, MemoryFile, everything_survives, nothing_unsynced_survives
from kraftd.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kraftd.wire.api import ApiKey
from tests.controller_node.harness import Harness

SEGMENT = "/data/__cluster_metadata-0/00000000000000000000.log"
TOPICS, PARTITIONS = 100, 1_500
MAX_SHARE = 1.1  # bytes that are read per byte of the log; headers of batches are read twice


@pytest.mark.parametrize("survives", [everything_survives, nothing_unsynced_survives])
def test_a_start_after_a_kill_reads_each_byte_of_the_log_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: Choose
) -> None:
    harness = Harness(tmp_path).start()
    harness.unfenced()
    for number in range(TOPICS):
        topic = CreatableTopic(f"topic-{number}", PARTITIONS, 1)
        harness.send(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic], 10_000))
    disk = harness.disk.after_crash(survives)
    size_bytes = disk.open(SEGMENT).size_bytes()
    read = MemoryFile.read
    counts = {"bytes": 0}

    def counting(file: Any, position: int, wanted_bytes: int) -> bytes:
        data = read(file, position, wanted_bytes)
        counts["bytes"] += len(data)
        return data

    monkeypatch.setattr(MemoryFile, "read", counting)
    restarted = Harness(tmp_path, disk).start()
    assert restarted.node.active and len(restarted.node.image.topics) == TOPICS
    settings = restarted.storage.log.settings
    assert settings.tail_bytes < size_bytes < settings.replay_bytes
    assert size_bytes <= counts["bytes"] < MAX_SHARE * size_bytes
