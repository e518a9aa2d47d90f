"""What a client node's executor reads from the log for fetches, and what becomes of a read that fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraftd.host.executors.metadata_topic_executor import MetadataTopicExecutor
from kraftd.log.tail import Tail
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.redaction.batches import SLICE_RECORDS
from kraftd.requests.call import Call
from kraftd.requests.effects import AnswerRecords, RecordsOf
from kraftd.requests.events import AnswerNotWritten
from kraftd.types import METADATA_TOPIC_ID
from kraftd.wire.api import ApiKey
from kraftd.wire.batch import build_batch, iter_batches
from kraftd.wire.error_code import ErrorCode
from kraftd.wire.frames import parse_response
from kraftd.wire.record_frame import VersionedRecord, encode_record
from tests.controller_node.harness import DIRECTORY
from tests.metadata_topic_node.clients import CLIENT, ClientHarness, consuming


class Executor(MetadataTopicExecutor):
    """A client node's executor without a loop: `due` are the callbacks that it has planned."""

    def __init__(self, harness: ClientHarness) -> None:
        self.due: list[Callable[[], None]] = []
        self.closed: dict[int, str] = {}
        self.errors: list[str] = []
        self.answers: list[FetchResponse] = []
        self.stepped: list[Any] = []
        timer = SimpleNamespace(call_soon=lambda action, *given: self.due.append(lambda: action(*given)))
        log = SimpleNamespace(error=lambda text, **_: self.errors.append(text))
        ports: Any = SimpleNamespace(timer=timer, log=log, work_threads=None, failed=None)
        super().__init__(harness.clients, harness.view, harness.storage.log, ports, self)
        self.harness = harness

    def is_open(self, connection_id: int) -> bool:
        return connection_id not in self.closed

    def close(self, connection_id: int, reason: str) -> None:
        self.closed[connection_id] = reason

    def respond(self, call: Call, parts: list[Any]) -> None:
        _, answer = parse_response(call.key, call.version, memoryview(b"".join(parts))[4:])
        self.answers.append(answer)  # type: ignore[arg-type]

    answer = line = audited = send_to_node = mute = close  # no effect of these kinds is performed here

    def step(self, event: Any) -> None:
        self.stepped.append(event)

    def fetch(self, offset: int) -> None:
        """Perform the effect that answers a consumer's fetch of all records from this offset on."""
        call = Call(
            1000, len(self.answers), CLIENT, "127.0.0.1", ApiKey.FETCH, 17, 7, "test", consuming(offset)
        )
        partition = PartitionData(high_watermark=self.harness.view.high_watermark)
        topic = FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])
        message = FetchResponse(responses=[topic])
        self.performers[AnswerRecords](
            AnswerRecords(
                call,
                message,
                (RecordsOf(partition, offset, self.harness.view.high_watermark, 1 << 20),),
            )
        )

    @property
    def partition(self) -> PartitionData:
        (answer,) = self.answers
        return answer.responses[0].partitions[0]


KEY = b"a stored key of thirty-two bytes"


def append_credentials(executor: Executor, count: int) -> None:
    """Commit one batch of SCRAM credentials."""
    harness = executor.harness
    log = harness.storage.log
    values = [
        encode_record(
            VersionedRecord(UserScramCredentialRecord(f"user{number}", 1, b"salt", KEY, KEY, 4096), 0)
        )
        for number in range(count)
    ]
    log.append(build_batch(values, log.log_end, harness.view.epoch, 1))
    log.sync()
    harness.view = SimpleNamespace(high_watermark=log.log_end)  # type: ignore[assignment]


@pytest.fixture
def executor(tmp_path: Path) -> Executor:
    harness = ClientHarness(tmp_path)
    harness.start()
    return Executor(harness)


def test_answer_has_the_records_of_the_log(executor: Executor) -> None:
    executor.fetch(0)
    end_offset = executor.harness.view.high_watermark
    assert bytes(executor.partition.records or b"") == executor.harness.storage.log.read(
        0, 1 << 20, end_offset
    )
    assert executor.partition.error_code == ErrorCode.NONE


def test_answer_has_no_secret_of_the_log(executor: Executor) -> None:
    log = executor.harness.storage.log
    begin = log.log_end
    append_credentials(executor, 2 * SLICE_RECORDS)
    executor.fetch(begin)
    assert not executor.answers  # there is more to do than one callback allows
    while executor.due:
        executor.due.pop(0)()
    assert KEY in bytes(log.read(begin, 1 << 20))
    served = bytes(executor.partition.records or b"")
    (batch,) = iter_batches(served)
    assert (batch.header.base_offset, batch.header.record_count) == (begin, 2 * SLICE_RECORDS)
    assert KEY not in served and b"user7" in served


def test_nothing_is_answered_if_the_connection_closes_meanwhile(executor: Executor) -> None:
    begin = executor.harness.storage.log.log_end
    append_credentials(executor, 2 * SLICE_RECORDS)
    executor.fetch(begin)
    executor.close(1000, "gone")
    while executor.due:
        executor.due.pop(0)()
    assert not executor.answers and not executor.stepped


def test_records_that_a_snapshot_replaced_meanwhile_are_out_of_range(executor: Executor) -> None:
    executor.fetch(executor.harness.storage.log.log_end + 1)
    assert executor.partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert not executor.partition.records and not executor.closed


def test_damage_closes_the_connection_and_is_logged(executor: Executor) -> None:
    disk, log = executor.harness.disk, executor.harness.storage.log
    log._tail = Tail(log.log_end)  # as if newer records had taken its memory
    (segment,) = (path for path in disk.paths() if path.endswith(".log") and path.startswith(DIRECTORY))
    disk.flip_bit(segment, 16, 3)  # the magic of the first batch
    executor.fetch(0)
    assert executor.closed == {1000: "the log could not be read"}
    assert executor.errors == ["the log could not be read"] and not executor.answers


def test_fault_in_an_answer_is_passed_to_the_node(
    executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(_effect: AnswerRecords, _data: bytes) -> None:
        raise ValueError("planted")

    monkeypatch.setattr(AnswerRecords, "fill", fill)
    executor.fetch(0)
    while executor.due:
        executor.due.pop(0)()
    (failed,) = executor.stepped
    assert isinstance(failed, AnswerNotWritten) and str(failed.error) == "planted"
    assert not executor.answers and not executor.closed


def test_nothing_is_read_for_a_connection_that_is_closed(executor: Executor) -> None:
    executor.close(1000, "gone")
    executor.fetch(0)
    assert not executor.answers
