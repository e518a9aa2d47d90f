"""What the logs of ordinary partitions cost on a real disk, without network and protocol.

    .venv/bin/python -m bench.partition_logs
    .venv/bin/python -m bench.partition_logs --only idle --partitions 100000

append: CPU of one append, by size of its batch. read: CPU of a read, from memory and from the page cache.
recover: an unclean start of one log, whole and its longest slice. idle: memory of logs that nothing is
appended to, and the time to make and to open one.
"""

from __future__ import annotations

import argparse
import gc
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.opening import Found, create_data_log, open_data_log
from kraftd.log.data.resources import LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.disk import RealDisk
from kraftd.log_dirs.directories import LogDirectories, LogDirectory
from kraftd.log_dirs.log_loader import LogLoader
from kraftd.wire.batch import build_batch, parse_header

Figures = dict[str, float]

SIZES = (100, 16 << 10, 1 << 20)
TOPIC_ID = bytes(range(16))
US = 1e6


def batch_of(size_bytes: int, base_offset: int = 0) -> bytes:
    """A batch of about that size, of records of 100 bytes."""
    return build_batch([b"x" * 90] * max(1, size_bytes // 100), base_offset, 1, 1_700_000_000_000)


def new_log(home: Path, tail_bytes: int = 16 << 20) -> DataLog:
    resources = LogResources(RealDisk())
    resources.tails.max_bytes = tail_bytes
    log = create_data_log(resources, str(home), "bench", 0, DataLogSettings(), now_ms=0, topic_id=TOPIC_ID)
    log.read(0, 1)  # a log that is read keeps its newest batches in memory
    return log


def fill(log: DataLog, batch: bytes, count: int) -> float:
    """Append one batch many times, with ascending offsets; the CPU seconds of an append."""
    data = bytearray(batch)
    header, views = parse_header(batch), [memoryview(data)]
    began = time.process_time()
    for _ in range(count):
        base = log.log_end
        data[:8] = base.to_bytes(8, "big")
        log.append(views, [header._replace(base_offset=base)], 0)
    return (time.process_time() - began) / count


def appends(home: Path) -> Figures:
    found: Figures = {}
    for size in SIZES:
        log = new_log(home / f"append-{size}")
        count = max(200, min(20_000, (256 << 20) // size))
        found[f"append_{size}_us"] = fill(log, batch_of(size), count) * US
        log.close_files()
    return found


def reads(home: Path) -> Figures:
    found: Figures = {}
    for name, tail_bytes in (("memory", 16 << 20), ("page_cache", 0)):
        log = new_log(home / f"read-{name}", tail_bytes)
        fill(log, batch_of(16 << 10), 700)
        for max_bytes in (64 << 10, 1 << 20):
            began, count, offset, read_bytes = time.process_time(), 0, 0, 0
            while count < 2000:
                data = log.read(offset, max_bytes, cached_only=True)
                assert data
                read_bytes += len(data)
                count += 1
                offset = (offset + 997) % (log.log_end - 20_000)
            spent = time.process_time() - began
            found[f"read_{name}_{max_bytes >> 10}_kib_us"] = spent / count * US
            found[f"read_{name}_{max_bytes >> 10}_kib_s_per_gb"] = spent / read_bytes * 1e9
        log.close_files()
    return found


def recovery(home: Path, size_bytes: int) -> Figures:
    found: Figures = {}
    for batch_bytes in (1 << 10, 16 << 10):
        log = new_log(home / f"recover-{batch_bytes}", 0)
        fill(log, batch_of(batch_bytes), size_bytes // len(batch_of(batch_bytes)))
        log.close_files()
        resources = LogResources(RealDisk())
        began = time.process_time()
        slices, longest = 0, 0.0
        opening = open_data_log(
            resources, log.parent, "bench", 0, DataLogSettings(), Found(clean=False), now_ms=0
        )
        while True:
            started = time.process_time()
            try:
                next(opening)
            except StopIteration:
                break
            finally:
                longest = max(longest, time.process_time() - started)
                slices += 1
        found[f"recover_gib_of_{batch_bytes >> 10}_kib_batches_s"] = (
            (time.process_time() - began) / size_bytes * (1 << 30)
        )
        found[f"longest_slice_of_{batch_bytes >> 10}_kib_batches_ms"] = longest * 1000
    return found


def idle(home: Path, count: int) -> Figures:
    """Partitions with one record each, of topics of a hundred partitions."""
    home.mkdir()
    settings, directory = DataLogSettings(), LogDirectory(str(home), TOPIC_ID)
    directories = LogDirectories(LogResources(RealDisk()), [directory], lambda topic: settings)
    directories.all_loaded.add(str(home))
    data = batch_of(100)
    header = parse_header(data)
    began = time.process_time()
    for number in range(count):
        log = directories.create(f"topic-{number // 100}", number % 100, TOPIC_ID, 0)
        log.append([data], [header], 0)
    made = time.process_time()
    for log in directories.logs.values():
        # As a clean stop, but for its fsyncs.
        log.segments[-1].finish(log.directory, log.opened)
        log.recovery_point = log.log_end
        log.write_snapshot(log.log_end, [])
    for job in directories.checkpoints_of(str(home)):
        job.run()
    (home / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}')
    del directories, log
    gc.collect()
    before = rss_bytes()
    closed = time.process_time()
    directories = LogDirectories(LogResources(RealDisk()), [directory], lambda topic: settings)
    loader = LogLoader(directories, 0).load()
    opened = time.process_time()
    del loader
    gc.collect()
    return {
        "partitions": count,
        "make_us": (made - began) / count * US,
        "open_us": (opened - closed) / count * US,
        "memory_bytes": (rss_bytes() - before) / count,
    }


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("append", "read", "recover", "idle"))
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--recover-mib", type=int, default=1024)
    parser.add_argument("--home", type=Path, help="where to write; a temporary directory by default")
    options = parser.parse_args()
    runs: dict[str, Callable[[Path], Figures]] = {
        "append": appends,
        "read": reads,
        "recover": lambda home: recovery(home, options.recover_mib << 20),
        "idle": lambda home: idle(home / "idle", options.partitions),
    }
    found: Figures = {}
    for name, run in runs.items():
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(dir=options.home) as home:
                found |= run(Path(home))
    print(json.dumps({name: round(value, 3) for name, value in found.items()}, indent=2))


if __name__ == "__main__":
    main()
