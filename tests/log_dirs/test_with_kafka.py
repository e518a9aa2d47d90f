"""A stock broker's directory under these logs and back: every file, after a clean stop and after kill -9."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import create_data_log
from kraftd.log.data.resources import LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.data.transaction_index import decode_aborted
from kraftd.log.disk import RealDisk
from kraftd.log.offset_checkpoint import decode_offsets, encode_offsets
from kraftd.log_dirs.clean_shutdown import decode_clean_shutdown, encode_clean_shutdown
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.metadata_dir.files.meta_properties import read_meta_properties
from kraftd.wire.batch import Batch, build_batch, iter_batches
from kraftd.wire.producer_snapshot import decode_producers, encode_producers
from testkit.cluster import Cluster
from testkit.java import tools
from tests.kafka.conftest import pytest_runtest_makereport as pytest_runtest_makereport

pytestmark = pytest.mark.kafka

DISK = RealDisk()
TOPIC = "orders"
SETTINGS = DataLogSettings(segment_bytes=1 << 20, index_interval_bytes=1000)
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("log-dirs"), "kraftd") as cluster:
        cluster.start_controller()
        cluster.start_brokers(1)
        yield cluster


def produce(cluster: Cluster, first: int, count: int, size: int = 900) -> None:
    """Records `first` to `first + count`, idempotently, a few in a batch; all are acknowledged."""
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "batch.num.messages": 7}
    )
    failed: list[KafkaError] = []
    for number in range(first, first + count):
        producer.produce(
            TOPIC, f"{number}".ljust(size, "."), on_delivery=lambda error, _: error and failed.append(error)
        )
        producer.poll(0)
    assert producer.flush(60) == 0 and not failed


def transactions(cluster: Cluster) -> None:
    """A transaction that is committed and one that is aborted, interleaved."""
    servers = {"bootstrap.servers": cluster.bootstrap}
    one, two = (Producer({**servers, "transactional.id": name}) for name in ("one", "two"))
    for producer in (one, two):
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce(TOPIC, "in a transaction")
        producer.flush(60)
    one.abort_transaction(60)
    two.commit_transaction(60)
    cluster.wait_until(lambda: end_offset(cluster) == 3004, "both markers are written")


def end_offset(cluster: Cluster) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "none"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=60)[1])
    except KafkaException as error:
        raise OSError(str(error)) from error
    finally:
        consumer.close()


def consumed(cluster: Cluster) -> list[str]:
    """The committed values of the topic, without the dots."""
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "none", "enable.auto.commit": False}
    consumer = Consumer(settings)
    low, high = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=60)
    consumer.assign([TopicPartition(TOPIC, 0, low)])
    found: list[str] = []
    try:
        while consumer.position([TopicPartition(TOPIC, 0)])[0].offset < high:
            for message in consumer.consume(500, timeout=5):
                assert message.error() is None, message.error()
                found.append(message.value().decode().rstrip("."))
    finally:
        consumer.close()
    return found


def opened(data: Path) -> tuple[LogDirectories, LogLoader]:
    properties = read_meta_properties(DISK, str(data))
    assert properties is not None
    directories = LogDirectories(
        LogResources(DISK), [LogDirectory(str(data), properties.directory_id)], lambda topic: SETTINGS
    )
    return directories, LogLoader(directories, 1 << 41).load()


def batches_of(log: DataLog) -> Iterator[Batch]:
    offset = log.log_start
    while offset < log.log_end:
        data = log.read(offset, 1 << 20)
        assert data
        for batch in iter_batches(bytes(data)):
            yield batch
            offset = batch.header.next_offset


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file()}


def written_again(log: DataLog, home: Path) -> Path:
    """The same batches, appended one by one to a new log, which is closed then."""
    home.mkdir()
    resources = LogResources(DISK)
    again = create_data_log(resources, str(home), TOPIC, 0, SETTINGS, now_ms=0, topic_id=log.topic_id)
    for batch in batches_of(log):
        again.append([batch.view], [batch.header], 0)
    for segment in log.segments:
        path = segment.path(log.directory, ".txnindex")
        if DISK.exists(path):
            for aborted in decode_aborted(DISK.read_bytes(path), path, segment.base_offset):
                assert again.segments[-1].base_offset == segment.base_offset, "it ends in the last segment"
                again.files.append_aborted(again.segments[-1], [aborted])
    again.close(0)
    return home / f"{TOPIC}-0"


def test_every_file_is_byte_for_byte_a_stock_brokers(cluster: Cluster, tmp_path: Path) -> None:
    cluster.create_topic(TOPIC, segment_bytes=1 << 20, index_interval_bytes=1000)
    produce(cluster, 0, 3000)
    transactions(cluster)
    broker = cluster.brokers[1]
    broker.stop()
    kafkas = files_of(broker.data / f"{TOPIC}-0")
    assert len([name for name in kafkas if name.endswith(".log")]) >= 3
    assert any(name.endswith(".txnindex") for name in kafkas)

    # Nothing changes when these logs are opened and closed.
    copy = tmp_path / "data"
    shutil.copytree(broker.data, copy)
    mark = (copy / ".kafka_cleanshutdown").read_bytes()
    directories, loader = opened(copy)
    epoch = loader.broker_epoch
    assert epoch is not None and encode_clean_shutdown(epoch) == mark
    assert decode_clean_shutdown(mark) == epoch
    assert loader.notes == [] and directories.damaged == {}
    log = directories.logs[TOPIC, 0]
    count = sum(batch.header.record_count for batch in batches_of(log))
    assert count == 3000 + 2 + 2, "records of both transactions, and their markers"
    assert len(log.aborted_transactions(0, log.log_end)) == 1
    for _ in directories.close(0, epoch, lambda key: None):
        pass
    assert files_of(copy / f"{TOPIC}-0") == kafkas
    assert (copy / ".kafka_cleanshutdown").read_bytes() == mark
    for name in CHECKPOINTS:
        data = (broker.data / name).read_bytes()
        offsets = decode_offsets(data)
        assert encode_offsets(offsets.items()) == data
        assert decode_offsets((copy / name).read_bytes()) == offsets

    # The same batches make the same files.
    again = files_of(written_again(log, tmp_path / "again"))
    for name in kafkas:
        if name.endswith(".snapshot"):
            entries = decode_producers(kafkas[name])
            assert entries == [] or entries[0].producer_id >= 0
            assert encode_producers(entries) == kafkas[name]
        else:
            assert again[name] == kafkas[name], name


def test_a_stock_broker_goes_on_where_these_logs_stopped_and_the_reverse(cluster: Cluster) -> None:
    broker = cluster.brokers[1]
    expected = consumed_after_start(cluster)

    # kill -9 of the stock broker: what it acknowledged is in the page cache, and here.
    produce(cluster, 3000, 1500)
    broker.kill()
    directories, loader = opened(broker.data)
    assert loader.broker_epoch is None and directories.damaged == {}
    log = directories.logs[TOPIC, 0]
    found = [str(value) for batch in batches_of(log) for value in [batch.header.record_count]]
    assert sum(map(int, found)) == 3000 + 4 + 1500
    assert log.epochs.latest is not None

    # Batches of these logs, over a roll and without a close, as a kill leaves them.
    expected += [str(number) for number in range(3000, 4500)]
    epoch, segments = log.epochs.latest, len(log.segments)
    for number in range(4500, 6000):
        data = build_batch([b"ours %d" % number + b"." * 900], log.log_end, epoch, 1_700_000_000_000 + number)
        log.append([data], [next(iter_batches(data)).header], 0)
        expected.append(f"ours {number}")
    assert len(log.segments) > segments
    names = [segment.path(log.directory) for segment in log.segments]
    directories.resources.files.close()
    start(cluster)
    assert consumed(cluster) == expected

    # A clean stop of these logs: the stock broker recovers nothing.
    broker.stop()
    directories, loader = opened(broker.data)
    assert loader.notes == []
    log = directories.logs[TOPIC, 0]
    data = build_batch([b"the last"], log.log_end, log.epochs.latest or 0, 1_800_000_000_000)
    log.append([data], [next(iter_batches(data)).header], 0)
    expected.append("the last")
    for _ in directories.close(0, 5, lambda key: list):
        pass
    for path in [*names, *(name.replace(".log", ".index") for name in names)]:
        run = tools().run("dump-log", "--files", path, *(["--index-sanity-check"] if "index" in path else []))
        assert "corrupt" not in run.check().out.lower() and "found mismatch" not in run.out.lower(), run.out
    for name in files_of(Path(log.directory)):
        if name.endswith((".txnindex", ".snapshot", ".timeindex")):
            tools().run("dump-log", "--files", f"{log.directory}/{name}").check()
    start(cluster)
    assert "Found invalid" not in broker.log_text()
    assert consumed(cluster) == expected
    produce(cluster, 6000, 10)
    assert consumed(cluster) == expected + [str(number) for number in range(6000, 6010)]


def start(cluster: Cluster) -> None:
    """Start the broker, and wait until it serves the partition: it is led a little earlier."""
    broker = cluster.brokers[1]
    broker.start()
    broker.wait_ready()
    cluster.wait_for_live_brokers(1)
    cluster.wait_until(lambda: end_offset(cluster) > 0, "the partition is served")


def consumed_after_start(cluster: Cluster) -> list[str]:
    start(cluster)
    found = consumed(cluster)
    assert found == [str(number) for number in range(3000)] + ["in a transaction"]
    return found
