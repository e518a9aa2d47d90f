"""The C engine: why it is fast, and that it leaks no memory."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kraftd.messages.delete_topics_request import DeleteTopicsRequest
from kraftd.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kraftd.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kraftd.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kraftd.messages.partition_record import PartitionRecord
from kraftd.wire import batch, python_codec, record_frame
from kraftd.wire.api import message_class
from kraftd.wire.errors import EncodeError, ProtocolError
from kraftd.wire.message import Message
from kraftd.wire.record_frame import VersionedRecord
from kraftd.wire.table import table_of
from testkit.random_messages import make
from tests.fuzzing.engine import fuzz_batches, fuzz_reading, fuzz_threads, fuzz_writing
from tests.fuzzing.hostile import outcome, plain
from tests.wire.engines import c_engine
from tests.wire.strategies import ALL_MESSAGES, messages, versions

C = c_engine()
needs_c = pytest.mark.skipif(C is None, reason="the C engine is not built")
REPOSITORY = Path(__file__).parents[2]


@needs_c
@pytest.mark.parametrize("name", ALL_MESSAGES)
def test_both_engines_have_the_same_result_for_every_message_and_damage(name: str) -> None:
    cls = message_class(name)

    @settings(max_examples=8, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        message = data.draw(messages(name, version))
        encoded = python_codec.encode_bytes(message, version)
        assert C.encode_bytes(message, version) == b"".join(C.encode(message, version)) == encoded
        cut = encoded[: data.draw(st.integers(0, len(encoded)))]
        for source in (encoded, cut, cut + b"\xff", cut + b"\x00" + encoded):
            expected = outcome(python_codec.decode, cls, version, source)
            assert plain(outcome(C.decode, cls, version, source)) == plain(expected)
        for other in versions(name):
            expected = outcome(python_codec.encode_bytes, message, other)
            assert outcome(C.encode_bytes, message, other) == expected

    for version in versions(name):  # noqa: B007 (the check sees it)
        check()


@needs_c
@pytest.mark.parametrize("fuzz", [fuzz_reading, fuzz_writing, fuzz_batches], ids=lambda fuzz: fuzz.__name__)
def test_random_damage_has_the_same_outcome_with_both_engines(fuzz: Callable[[Random, Any], None]) -> None:
    for seed in range(300):
        fuzz(Random(seed), C)


@needs_c
def test_two_threads_decode_long_messages_at_once() -> None:
    for seed in range(8):
        fuzz_threads(Random(seed), C)


def steps_of_another_thread(during: Callable[[], object]) -> int:
    """How often another thread got the GIL during a call."""
    steps, done = 0, threading.Event()
    started = threading.Event()

    def count() -> None:
        nonlocal steps
        while not done.is_set():
            steps += 1
            started.set()
            time.sleep(0)  # releases the GIL

    other = threading.Thread(target=count)
    other.start()
    started.wait()
    before = steps
    during()
    counted = steps - before
    done.set()
    other.join()
    return counted


@needs_c
def test_another_thread_runs_while_a_million_elements_are_decoded() -> None:
    request = ElectLeadersRequest(0, [TopicPartitions("a", tuple(range(1_000_000)))])
    data = C.encode_bytes(request, 2)
    found: list[ElectLeadersRequest] = []
    assert steps_of_another_thread(lambda: found.append(C.decode(ElectLeadersRequest, 2, data))) >= 20
    assert found == [request]


SHORT = ElectLeadersRequest(0, [TopicPartitions("a", tuple(range(4_000)))])
PARTITIONS_OF_MANY_BYTES = [PartitionData(index, records=bytes(1 << 20)) for index in range(4)]
# Views of records are made at once, however long they are.
LARGE = FetchResponse(responses=[FetchableTopicResponse("", bytes(16), PARTITIONS_OF_MANY_BYTES)])


@needs_c
@pytest.mark.parametrize(("message", "version"), [(SHORT, 2), (LARGE, 17)], ids=["short", "of records"])
def test_a_message_of_few_values_is_decoded_without_a_pause(message: Message, version: int) -> None:
    data = C.encode_bytes(message, version)
    before = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        assert steps_of_another_thread(lambda: C.decode(type(message), version, data)) == 0
    finally:
        sys.setswitchinterval(before)


@needs_c
def test_the_garbage_collector_does_not_know_arrays_of_messages() -> None:
    """So no other thread can see one that is half read; and a large request takes it no time."""
    topics = [FetchTopic(topic_id=bytes(16), partitions=[FetchPartition(at) for at in range(3)])]
    found = C.decode(FetchRequest, 13, C.encode_bytes(FetchRequest(topics=topics), 13))
    assert not gc.is_tracked(found.topics) and not gc.is_tracked(found.topics[0].partitions)
    names = C.decode(DeleteTopicsRequest, 5, C.encode_bytes(DeleteTopicsRequest(topic_names=("a", "b")), 5))
    assert not gc.is_tracked(names.topic_names)


@needs_c
def test_reading_writing_and_failing_leak_no_memory() -> None:
    random = Random(1)
    jobs: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    for name in ALL_MESSAGES:
        cls = message_class(name)
        table = table_of(cls)
        version = table.valid[1]
        message = make(random, cls, table, table.root, version)
        data = C.encode_bytes(message, version)
        wrong = cls()
        if wrong.__struct_fields__:
            setattr(wrong, wrong.__struct_fields__[0], object())
        jobs += [(C.encode, (message, version)), (C.encode_bytes, (wrong, version))]
        jobs += [(C.decode, (cls, version, data)), (C.decode_prefix, (cls, version, data))]
        jobs += [(C.decode, (cls, version, data[: random.randrange(len(data) + 1)])) for _ in range(3)]
    records = [VersionedRecord(PartitionRecord(at, bytes([at]) * 16, (1, 2, at)), 2) for at in range(50)]
    data = batch.build_batch([C.encode_record(record) for record in records], 0, 1, 2)
    jobs += [
        (C.batch_values, (data,)),
        (C.batch_messages, (data, 0, 0, 99)),
        (C.batch_messages, (data[:-3], 0, 0, 99)),
        (C.suspect_records, (data, bytes(256), frozenset())),
        (C.suspect_records, (data[:-3], bytes(256), frozenset())),
    ]
    jobs += [(C.encode_record, (record,)) for record in records]
    jobs += [(C.encode_records, (records,)), (C.encode_records, ([*records, None],))]

    def all_jobs() -> int:
        for function, arguments in jobs:
            outcome(function, *arguments)
        C.clear_memo()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    # A lost reference to a shared object shows in its reference count, not in memory.
    shared: list[Any] = [None, True, False, (), 0, 1, -1, b"", "", ProtocolError, EncodeError]
    shared += [message_class(name) for name in ALL_MESSAGES] + list(C.CODECS.values())
    tracemalloc.start()
    try:
        all_jobs()
        # A leak or a double release occurs in each call; what earlier tests left is freed once.
        for _ in range(4):
            counts = list(map(sys.getrefcount, shared))
            before = all_jobs()
            for _ in range(5):
                after = all_jobs()
            moved = [now - then for now, then in zip(map(sys.getrefcount, shared), counts, strict=True)]
            if all(abs(change) < 5 for change in moved[11:]) and after - before < 2000:
                break
    finally:
        tracemalloc.stop()
    assert after - before < 2000  # one leaked byte a call would add up to thousands
    odd = {repr(one): change for one, change in zip(shared, moved, strict=True) if abs(change) >= 5}
    assert all(abs(change) < 5 for change in moved[11:]), odd
    assert all(abs(change) < 200 for change in moved[:11]), odd


@needs_c
def test_equal_uuids_and_small_arrays_are_one_object() -> None:
    records = [PartitionRecord(at, bytes(range(16)), (1000, 2000, 3000), (1000, 2000, 3000)) for at in (1, 2)]
    first, second = [C.decode(PartitionRecord, 2, C.encode_bytes(record, 2)) for record in records]
    assert first.topic_id is second.topic_id
    assert first.replicas is first.isr is second.replicas
    assert not gc.is_tracked(first.replicas)


@needs_c
def test_an_array_that_occurs_again_is_written_again() -> None:
    """A list that several answers share is encoded once and copied; no other list is taken for it."""
    shared = [CreatableTopicConfigs(f"key{at}", "value") for at in range(33)]
    other = [CreatableTopicConfigs("x", None)]
    topics = [CreatableTopicResult(f"t{at}", configs=(shared, other, None, [])[at % 4]) for at in range(400)]
    message = CreateTopicsResponse(topics=topics)
    assert C.encode_bytes(message, 7) == python_codec.encode_bytes(message, 7)


@needs_c
def test_a_shared_array_is_written_correctly_around_separate_parts() -> None:
    large, small = bytes(10000), bytes(10)
    partitions = [PartitionData(1, records=large), PartitionData(2, records=small)]
    message = FetchResponse(
        responses=[FetchableTopicResponse(topic_id=bytes(16), partitions=partitions) for _ in range(3)]
    )
    parts = C.encode(message, 17)
    assert b"".join(parts) == python_codec.encode_bytes(message, 17)
    assert [part is large for part in parts].count(True) == 3


@needs_c
def test_an_error_in_a_huge_frame_takes_no_longer_than_reading_it() -> None:
    """There is no second, slow walk: the engine knows where the error is."""
    partitions = [FetchPartition(at) for at in range(20000)]
    data = C.encode_bytes(FetchRequest(topics=[FetchTopic(topic_id=bytes(16), partitions=partitions)]), 17)
    walked: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kraftd.wire.explain.DecodeWalk.field", lambda *_: walked.append(1))
        kind, text = outcome(C.decode, FetchRequest, 17, data[:-40])
    assert "topics[0].partitions[19999]" in text or "elements of at least" in text
    assert kind.__name__ == "ProtocolError" and not walked


@needs_c
def test_an_array_that_shrinks_while_it_is_written_is_refused() -> None:
    class Shrinking:
        def __init__(self, victim: list[Any]) -> None:
            self.victim = victim

        def __index__(self) -> int:
            self.victim.clear()
            return 1

    partitions: list[FetchPartition] = []
    partitions += [FetchPartition(Shrinking(partitions)), FetchPartition(2)]  # type: ignore[arg-type]
    request = FetchRequest(topics=[FetchTopic(topic_id=bytes(16), partitions=partitions)])
    with pytest.raises(ValueError, match="FetchRequest"):
        C.encode_bytes(request, 17)


@needs_c
@pytest.mark.parametrize(
    "arguments",
    [(), (FetchRequest,), (FetchRequest, 17), (FetchRequest, 17, b"", 0, 0, 0), (FetchRequest, "17", b"")],
)
def test_wrong_calls_raise_type_errors(arguments: tuple[Any, ...]) -> None:
    for function in (C.decode, C.decode_prefix):
        with pytest.raises(TypeError):
            function(*arguments)


@needs_c
def test_invalid_offsets_and_classes_are_refused() -> None:
    for negative in ((-1,), (0, -1)):
        with pytest.raises(ValueError, match="not negative"):
            C.decode(FetchRequest, 17, b"", *negative)
    for cls in (5, int, FetchTopic, Message):
        with pytest.raises(TypeError, match=r"not a message|not the class"):
            C.decode(cls, 17, b"")
    with pytest.raises(TypeError):
        C.encode_record((FetchRequest(), 17))
    with pytest.raises(TypeError, match="is not a metadata record"):
        C.encode_record(VersionedRecord(FetchRequest(), 17))


@needs_c
def test_a_batch_is_decoded_into_the_messages_of_its_records() -> None:
    records = [VersionedRecord(PartitionRecord(at, bytes(16), (at, at + 1)), 2) for at in range(300)]
    data = batch.build_batch(record_frame.encode_records(records), 1000, 3, 4)
    whole = batch.read_batch(data)
    assert list(record_frame.decode_batch(whole)) == [message for message, _ in records]
    messages, at = C.batch_messages(whole.view, 0, 0, 200)
    assert messages + C.batch_messages(whole.view, at, 200, 200)[0] == [message for message, _ in records]
    assert [bytes(value) for value in C.batch_values(whole.view)] == [
        record_frame.python_encode_record(record) for record in records
    ]


@pytest.mark.parametrize(("choice", "name"), [("", ""), ("c", "c"), ("python", "python")])
def test_the_environment_chooses_the_engine(choice: str, name: str) -> None:
    script = "from kraftd.wire.engine import engine_name; print(engine_name())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"KRAFTD_CODEC": choice}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if C is None and choice == "c":
        assert "the C engine cannot be loaded" in done.stderr
    else:
        assert done.stdout.strip() == (name or ("python" if C is None else "c"))
