"""``python -m bench.image DIRECTORY``: the costs of loading a controller's directory into an image.

It also writes the image back. One process does it, without a daemon.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kraftd.host.snapshots.checkpointing import CheckpointOrder, make_checkpoint
from kraftd.log.disk import RealDisk
from kraftd.metadata.image import Image
from kraftd.metadata_dir.files.checkpoint import CheckpointReader, by_epoch, checkpoint_path, list_checkpoints
from kraftd.metadata_dir.recovery import open_log
from kraftd.replica.replay import Replay
from kraftd.requests.effects import ScheduleSlice
from kraftd.types import OffsetAndEpoch
from kraftd.wire.batch import iter_batches
from kraftd.wire.record_frame import decode_batch

T = TypeVar("T")
READ_BYTES = 1 << 20


def resident_mib() -> float:
    """Resident memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def timed(what: str, work: Callable[[], T]) -> T:
    """Run the action, and print its CPU time and the resident memory that it added."""
    before = resident_mib()
    cpu, wall = time.process_time(), time.monotonic()
    result = work()
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    print(f"{what:32} {cpu:6.2f} CPU s {wall:6.2f} s {resident_mib() - before:+8.1f} MiB", flush=True)
    return result


class Directory:
    """The metadata partition of a stopped controller."""

    def __init__(self, path: Path) -> None:
        self.disk = RealDisk()
        self.path = f"{path}/__cluster_metadata-0"
        self.log = open_log(self.disk, self.path).log
        found, _ = list_checkpoints(self.disk, self.path)
        newest = max((one for one in found if one.offset), key=by_epoch, default=None)
        self.base: OffsetAndEpoch | None = newest
        self.start = 0 if newest is None else newest.offset

    def reader(self) -> CheckpointReader:
        assert self.base is not None
        return CheckpointReader(self.disk, checkpoint_path(self.path, self.base))

    def read(self) -> int:
        """Read all bytes, parse the batches and verify them."""
        count = (
            0 if self.base is None else sum(batch.header.record_count for batch in self.reader().batches())
        )
        offset = self.start
        while offset < self.log.log_end:
            for batch in iter_batches(self.log.read(offset, READ_BYTES)):
                offset = batch.header.next_offset
                count += batch.header.record_count
        return count

    def decode(self) -> None:
        """Decode all records, one after the other, and keep none."""
        for batch in () if self.base is None else self.reader().batches():
            for _ in decode_batch(batch):
                pass
        offset = self.start
        while offset < self.log.log_end:
            for batch in iter_batches(self.log.read(offset, READ_BYTES), verify=False):
                offset = batch.header.next_offset
                for _ in () if batch.header.is_control else decode_batch(batch):
                    pass

    def load(self) -> Image:
        """Load the image like a starting daemon."""
        snapshot = None if self.base is None else (self.base, self.reader().runs())
        replay = Replay(Image(), snapshot)
        if replay.start() is not None:
            while type(replay.run_slice(0)) is ScheduleSlice:
                pass
        end = self.log.log_end
        while replay.more(end) is not None:
            replay.begin(replay.next_offset, self.log.read(replay.next_offset, READ_BYTES, end))
            while type(replay.run_slice(0)) is ScheduleSlice:
                pass
        return replay.image

    def checkpoint(self) -> object:
        """Write a new checkpoint like the snapshot writer, in a separate directory beside the old one."""
        order = CheckpointOrder(
            directory=self.path,
            end_offset=self.log.log_end,
            epoch=max(self.log.last_epoch, 1),
            base=self.base,
        )
        return make_checkpoint(self.disk, order, 0)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.image", description=__doc__)
    parser.add_argument("directory", type=Path, help="of a controller that does not run; it is only read")
    parser.add_argument("--checkpoint", action="store_true", help="write a checkpoint into it, too")
    options = parser.parse_args()
    gc.disable()
    print(f"{'':32} a process begins with {resident_mib():.1f} MiB")
    directory = timed("open, checked", lambda: Directory(options.directory))
    timed("read, checked", directory.read)
    timed("decode", directory.decode)
    image = timed("load", directory.load)
    print(image)
    timed("a broker's partitions", lambda: sum(1 for _ in image.partitions_of(min(image.brokers, default=0))))
    timed("write back, not encoded", lambda: sum(1 for _ in image.records()))
    if options.checkpoint:
        print(timed("make a checkpoint", directory.checkpoint))


if __name__ == "__main__":
    main()
