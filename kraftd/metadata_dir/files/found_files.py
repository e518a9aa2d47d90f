"""The files of a partition's directory as a start finds them, before anything is changed."""

from __future__ import annotations

from kraftd.log.disk import Disk
from kraftd.metadata_dir.files.checkpoint import by_epoch, find_download, list_checkpoints, part_name
from kraftd.metadata_dir.files.high_watermark import Mark, read_mark
from kraftd.named_tuple import NamedTuple
from kraftd.types import OffsetAndEpoch


class FoundFiles(NamedTuple):
    """snapshots are the whole checkpoints, by epoch. download is the id and the size in bytes of a newer one
    that the last process did not finish; leftovers are the names of other unfinished or deleted ones.
    """

    names: list[str]
    snapshots: list[OffsetAndEpoch]
    download: tuple[OffsetAndEpoch, int] | None
    leftovers: list[str]
    mark: Mark

    @property
    def newest(self) -> OffsetAndEpoch | None:
        """The newest checkpoint that holds records."""
        return self.snapshots[-1] if self.snapshots and self.snapshots[-1].offset > 0 else None


def find_files(disk: Disk, directory: str) -> FoundFiles:
    """Look at a partition's directory. Raises DirectoryProblem for a high watermark that cannot be read."""
    snapshots, leftovers = list_checkpoints(disk, directory)
    download = find_download(disk, directory)
    if download is not None:
        if download[1] and (not snapshots or by_epoch(download[0]) > by_epoch(snapshots[-1])):
            leftovers.remove(part_name(download[0], download=True))
        else:
            download = None
    return FoundFiles(disk.list_names(directory), snapshots, download, leftovers, read_mark(disk, directory))
