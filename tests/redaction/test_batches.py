"""Batches as consumers get them: no secret, everything else as in the log, and in slices."""

from __future__ import annotations

from collections.abc import Generator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraftd.messages.config_record import ConfigRecord
from kraftd.messages.leader_change_message import LeaderChangeMessage
from kraftd.messages.no_op_record import NoOpRecord
from kraftd.messages.topic_record import TopicRecord
from kraftd.messages.user_scram_credential_record import UserScramCredentialRecord
from kraftd.redaction import batches
from kraftd.redaction.batches import SLICE_RECORDS, redacted_batches
from kraftd.redaction.records import redacted
from kraftd.wire.batch import (
    ControlRecordType,
    CorruptBatch,
    build_batch,
    build_control_batch,
    iter_batches,
    records,
    signed_varint,
)
from kraftd.wire.message import Message
from kraftd.wire.primitives import Buffer
from kraftd.wire.record_frame import VersionedRecord, decode_batch, encode_record, encode_records
from tests.metadata_dir.compressed import CODECS, compressed
from tests.redaction.secrets import records_with_secrets, shown_secrets

NOW_MS = 1_700_000_000_000
CREDENTIAL = UserScramCredentialRecord("alice", 1, b"salt of alice", b"stored key", b"server key", 4096)
SECRETS = (CREDENTIAL.salt, CREDENTIAL.stored_key, CREDENTIAL.server_key)
ENGINES = ("c", "python") if batches.C_ENGINE is not None else ("python",)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(batches, "C_ENGINE", None)


def finished(work: Generator[None, None, Buffer]) -> tuple[Buffer, int]:
    """The result of some work in slices, and how many pauses it made."""
    pauses = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, pauses
        pauses += 1


def served(data: bytes) -> Buffer:
    return finished(redacted_batches(data))[0]


def batch_of(*messages: Message, base_offset: int = 0, epoch: int = 3) -> bytes:
    values = encode_records([VersionedRecord(one, 0) for one in messages])
    return build_batch(values, base_offset, epoch, NOW_MS)


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=30, deadline=None)
@pytest.mark.usefixtures("engine")
def test_consumers_see_no_secret_and_all_else(seed: int) -> None:
    random = Random(seed)
    parts, secrets, offset = [], set(), random.randrange(1000)
    messages: list[Message] = []
    for _ in range(random.randint(1, 6)):
        some, more = records_with_secrets(random, random.choice((1, 2, 40)))
        parts.append(batch_of(*some, base_offset=offset, epoch=random.randrange(9)))
        offset += len(some)
        secrets |= more
        messages += some
    data = b"".join(parts)
    output = served(data)
    assert shown_secrets(bytes(output), secrets) == []
    found = list(iter_batches(output))  # checks the checksums
    assert [message for one in found for message in decode_batch(one)] == [redacted(one) for one in messages]
    for part, one in zip(parts, found, strict=True):
        (before,) = iter_batches(part)
        kept = before.header._replace(length_bytes=one.header.length_bytes, crc=one.header.crc)
        assert one.header == kept
        if all(redacted(message) is message for message in decode_batch(before)):
            assert bytes(one.view) == part


@pytest.mark.usefixtures("engine")
def test_bytes_without_secrets_pass_untouched() -> None:
    control = build_control_batch(
        [(ControlRecordType.LEADER_CHANGE, LeaderChangeMessage(0, 1), 0)], 0, 1, NOW_MS
    )
    data = control + batch_of(ConfigRecord(2, "t", "retention.ms", "5"), TopicRecord("t", bytes(16)))
    assert served(data) is data
    assert served(b"") == b""


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("codec", CODECS)
def test_a_compressed_batch_with_a_secret_is_served_uncompressed(codec: str) -> None:
    topic = TopicRecord("t" * 200, bytes(16))
    data = compressed(batch_of(topic, CREDENTIAL, topic, base_offset=7), codec)
    output = served(data)
    (found,) = iter_batches(output)
    assert found.header.compression == "none" and found.header.base_offset == 7
    assert list(decode_batch(found)) == [topic, redacted(CREDENTIAL), topic]
    harmless = compressed(batch_of(topic, topic), codec)
    assert served(harmless) is harmless


def unusual(value: bytes, *, key: bytes = b"key", headers: bytes = b"\x00") -> bytes:
    """A record as no controller writes it: with a key, a timestamp's delta, and perhaps headers."""
    body = b"\x00" + signed_varint(5) + signed_varint(0) + signed_varint(len(key)) + key
    body += signed_varint(len(value)) + value + headers
    return signed_varint(len(body)) + body


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("headers", [b"\x00", b"\x02\x02h\x02v"])
def test_records_of_an_unusual_form_keep_key_time_and_headers(headers: bytes) -> None:
    secret = encode_record(VersionedRecord(CREDENTIAL, 0))
    start = batch_of(NoOpRecord(), base_offset=4)[:61]
    output = served(_with_length(start + unusual(secret, headers=headers)))
    (found,) = iter_batches(output)
    (record,) = records(found)
    assert (record.offset, record.timestamp_ms, bytes(record.key or b"")) == (4, NOW_MS + 5, b"key")
    assert bytes(record.value or b"") == encode_record(VersionedRecord(redacted(CREDENTIAL), 0))
    assert bytes(found.view).endswith(headers)


def _with_length(data: bytes) -> bytes:
    return data[:8] + (len(data) - 12).to_bytes(4) + data[12:]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    "value",
    [
        b"\x01\x7f\x00" + SECRETS[0],  # an unknown type
        b"\x01\x0b\x01" + SECRETS[0],  # a later version
        b"\x02\x0b\x00" + SECRETS[0],  # another frame
        b"\x01\x0b\x00\x40" + SECRETS[0],  # damaged
        b"\x01\x04\x00\x02\x30" + SECRETS[0],
        SECRETS[0],
    ],
)
def test_a_record_that_cannot_be_decoded_becomes_a_no_op(value: bytes) -> None:
    topic = encode_record(VersionedRecord(TopicRecord("t", bytes(16)), 0))
    output = served(build_batch([topic, value, topic], 3, 1, NOW_MS))
    (found,) = iter_batches(output)
    assert [type(one) for one in decode_batch(found)] == [TopicRecord, NoOpRecord, TopicRecord]
    assert SECRETS[0] not in bytes(output)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("cut", [3, 30, 61, 70])
def test_bytes_that_are_no_batches_are_not_served(cut: int) -> None:
    data = batch_of(CREDENTIAL)
    with pytest.raises(CorruptBatch):
        served(data + data[:cut])


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("per_batch", [1, 12_000])
def test_many_secrets_are_blanked_in_slices(per_batch: int) -> None:
    value = encode_record(VersionedRecord(CREDENTIAL, 0))
    count = 12_000 if per_batch > 1 else 600
    parts = [build_batch([value] * per_batch, at, 1, NOW_MS) for at in range(0, count, per_batch)]
    output, pauses = finished(redacted_batches(b"".join(parts)))
    assert pauses >= count // SLICE_RECORDS
    assert SECRETS[0] not in bytes(output)


def test_both_engines_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[Any] = []
    for name in ENGINES:
        if name == "python":
            monkeypatch.setattr(batches, "C_ENGINE", None)
        some, _ = records_with_secrets(Random(3), 300)
        outputs.append(served(batch_of(*some) + batch_of(*some[:5], base_offset=300)))
    assert outputs[0] == outputs[-1]
