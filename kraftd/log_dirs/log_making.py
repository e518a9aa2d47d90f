"""One new log, whose directory and files a thread makes.

making = directories.begin_create(topic, partition, topic_id, now_ms)
making.run()                               # in any thread
log = directories.end_create(making)       # on the loop; another making, in the next directory, if one failed
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

from kraftd.log.data.data_log import DataLog
from kraftd.log.data.open_files import OpenFiles
from kraftd.log.data.opening import create_data_log
from kraftd.log.data.resources import LogResources
from kraftd.log.data.settings import DataLogSettings
from kraftd.log.errors import StorageError
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log_dirs.jobs import remove_tree
from kraftd.types import Uuid

_OPEN_FILES = 8


class LogMaking:
    """A log that is to be made in the first of some directories. After `run`, either log or error is set.

    name is that of its directory, None for topic and partition.
    """

    producers = None
    notes = ()  # nothing of a new log is repaired

    def __init__(
        self,
        resources: LogResources,
        paths: Sequence[str],
        key: TopicPartition,
        topic_id: Uuid | None,
        settings: DataLogSettings,
        now_ms: int,
        name: str | None,
    ) -> None:
        self.path, *self.other_paths = paths
        self.key = key
        self.topic_id = topic_id
        self.settings = settings
        self.now_ms = now_ms
        self.name = name
        self.log: DataLog | None = None
        self.error: StorageError | None = None
        self._resources = resources
        self._lock = threading.Lock()  # a stop waits for the thread that makes it

    def __repr__(self) -> str:
        return f"<LogMaking {self.directory}>"

    @property
    def directory(self) -> str:
        return f"{self.path}/{self.name or '{}-{}'.format(*self.key)}"

    def run(self) -> None:
        """Make the log, unless that is done. Blocks."""
        with self._lock:
            if self.log is not None or self.error is not None:
                return
            disk, topic, partition = self._resources.disk, *self.key
            files = OpenFiles(disk, _OPEN_FILES)  # those of the resources are the event loop's
            own = LogResources(disk, files, draw=self._resources.draw)
            try:
                self.log = create_data_log(
                    own,
                    self.path,
                    topic,
                    partition,
                    self.settings,
                    now_ms=self.now_ms,
                    topic_id=self.topic_id,
                    name=self.name,
                )
            except StorageError as error:
                self._remove_unfinished()
                self.error = error
            finally:
                files.close()

    def _remove_unfinished(self) -> None:
        """Remove what was made of a log that could not be made: the partition may go to another directory."""
        disk = self._resources.disk
        with suppress(StorageError):
            if disk.exists(self.directory):
                remove_tree(disk, self.directory)
