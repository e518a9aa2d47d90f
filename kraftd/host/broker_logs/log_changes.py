"""Which logs a broker has: opens, makes, deletes them and sets them aside, one after the other.

A start or a CreateTopics may bring thousands. So they take many callbacks of the event loop, and a thread
makes the files, of some logs at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from kraftd.broker_node.effects import DeleteLog, OpenLog, SetLogAside
from kraftd.broker_node.events import LogNotOpened, LogOpened, LogsOpened
from kraftd.ground.event import Event
from kraftd.ground.pace import MAX_SLICE_WORK_US, Pace
from kraftd.host.broker_logs.checkpoints import Checkpoints
from kraftd.host.broker_logs.replayed_producers import ReplayedProducers
from kraftd.host.ports import Log, Ports
from kraftd.log.data.data_log import DataLog
from kraftd.log.data.recovery import ProducerReplay
from kraftd.log.errors import DiskFull, StorageError
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.full_directories import FullDirectories
from kraftd.log_dirs.log_making import LogMaking
from kraftd.log_dirs.log_opening import LogReopening
from kraftd.types import Uuid

LOGS_PER_CALLBACK = 20  # that are asked for again at a time, once there may be room
MADE_AT_ONCE = 32  # logs, by one job of a thread: handing over a job takes as long as making a log

OPENED_US = 100  # of work for a log that a start has found, or a thread has made
BEGUN_US = 25  # for one that a thread is to make
MOVED_US = MAX_SLICE_WORK_US  # for one whose directory is renamed

Change = Callable[[], int]
"""Returns its work, in microseconds."""
Making = tuple[OpenLog, LogMaking | LogReopening]


class LogChanges:
    """See the module. `step` steps the node. `failed` and `directory_failed` account for failures of a log
    and of a directory, `note_failures` notifies the node of them. `full` gets the directories without room.
    """

    def __init__(
        self,
        directories: LogDirectories,
        loaded_producers: dict[TopicPartition, ProducerReplay],
        ports: Ports,
        step: Callable[[Event], None],
        new_unique_text: Callable[[], str],
        checkpoints: Checkpoints,
        failed: Callable[[TopicPartition, DataLog, StorageError], None],
        directory_failed: Callable[[str, Exception], None],
        note_failures: Callable[[], None],
        full: FullDirectories,
    ) -> None:
        self.directories = directories
        self._full = full
        self._loaded_producers = loaded_producers
        self._ports = ports
        self._lines: Log = ports.log
        self._step = step
        self._unique_text = new_unique_text
        self._checkpoints = checkpoints
        self._failed = failed
        self._directory_failed = directory_failed
        self._note_failures = note_failures
        self.recover: Callable[[OpenLog], None] = lambda effect: None  # before a log is opened
        self._is_closed = False
        self._waiting_for_room: dict[TopicPartition, OpenLog] = {}
        self._named: set[TopicPartition] = set()  # in the process log, as waiting
        self._changes: deque[Change | OpenLog] = deque()  # that wait
        self._is_busy = False  # with one, or logs are being made
        self._just_opened: list[LogOpened] = []  # in this slice

    def __repr__(self) -> str:
        return f"<LogChanges, {len(self._changes)} to do, {len(self._waiting_for_room)} without room>"

    def close(self) -> None:
        """Begin no further change."""
        self._is_closed = True

    # -- one after the other

    def _add(self, change: Change | OpenLog) -> None:
        self._changes.append(change)
        if not self._is_busy:
            self._go_on()

    def _go_on(self) -> None:
        self._is_busy = bool(self._changes) and not self._is_closed
        if self._is_busy:
            self._ports.timer.call_soon(self._begin_next)

    def _begin_next(self) -> None:
        """Do changes until a slice is full, or until logs are to be made before the next one."""
        pace, now_ms = Pace(), self._ports.wall_ms()  # one number for the logs of a slice
        makings: list[Making] = []
        while self._changes and not self._is_closed:
            if makings and not _goes_with(self._changes[0], makings):
                break
            change = self._changes.popleft()
            if isinstance(change, OpenLog):
                spent = self._open(change, makings, now_ms)
            else:
                self._notify()
                spent = change()
            if pace.spent(spent):
                break
        self._notify()
        if makings:
            self._make(makings)
        else:
            self._go_on()

    # -- opening

    def open(self, effect: OpenLog) -> None:
        """Open or make the log of a partition; LogsOpened or LogNotOpened comes back in a later callback."""
        self._add(effect)

    def _open(self, effect: OpenLog, makings: list[Making], now_ms: int) -> int:
        """Open a log that is there, or add what makes it; returns the work."""
        key, directories = (effect.topic, effect.partition), self.directories
        if directories.is_contested(*key, effect.topic_id):
            self._keep_one(key, effect.topic_id)
        try:
            self.recover(effect)
            found = directories.begin_create(
                *key,
                effect.topic_id,
                now_ms,
                directory_id=effect.directory_id,
                is_new=effect.is_new,
            )
        except (StorageError, ValueError) as error:
            self._not_opened(effect, error)
            return OPENED_US
        producers = self._loaded_producers.pop(key, None)
        if not isinstance(found, DataLog):
            makings.append((effect, found))
            return BEGUN_US
        self._opened(effect, found, producers)
        return OPENED_US

    def _make(self, makings: list[Making]) -> None:
        def work() -> None:
            for _, making in makings:
                making.run()

        made = partial(self._made, deque(makings), [])
        self._ports.work_threads.run(work, made, self._ports.failed)

    def _made(self, makings: deque[Making], again: list[Making], _result: None = None) -> None:
        """Account for logs that were made, some in each callback. What failed is made in the next directory,
        as far as there is one.
        """
        pace = Pace()
        while makings and not self._is_closed:  # once closed, the directories have accounted for them
            effect, making = makings.popleft()
            try:
                found = self.directories.end_create(making, self._directory_failed)
            except StorageError as error:
                if isinstance(error, DiskFull):
                    self._full.note(making.path)
                self._not_opened(effect, error)
            else:
                if isinstance(found, LogMaking):
                    again.append((effect, found))
                else:
                    self._made_one(making)
                    self._opened(effect, found, making.producers)
            if makings and pace.spent(OPENED_US):
                self._notify()
                self._ports.timer.call_soon(self._made, makings, again)
                return
        self._notify()
        if again and not self._is_closed:
            self._make(again)
        else:
            self._go_on()

    def _made_one(self, making: LogMaking | LogReopening) -> None:
        self._full.wrote(making.path)
        for note in making.notes:
            self._lines.warning("recovered", note=note)
        if making.key in self._named:
            self._named.discard(making.key)
            self._lines.info("a partition has room again", partition=f"{making.key[0]}-{making.key[1]}")

    def _opened(self, effect: OpenLog, log: DataLog, producers: ProducerReplay | None) -> None:
        key = (effect.topic, effect.partition)
        high_watermark = self.directories.high_watermarks.pop((log.parent, key), 0)
        states = producers.states if isinstance(producers, ReplayedProducers) else None
        directory_id = self.directories.id_of(log)
        self._just_opened.append(LogOpened(*key, effect.topic_id, log, high_watermark, states, directory_id))

    def _notify(self) -> None:
        """Notify the node of the logs that were opened in this slice."""
        if self._just_opened:
            opened, self._just_opened = tuple(self._just_opened), []
            self._step(LogsOpened(opened))

    def _not_opened(self, effect: OpenLog, error: Exception) -> None:
        key = (effect.topic, effect.partition)
        is_full = isinstance(error, DiskFull)
        if is_full:
            self._waiting_for_room[key] = effect
        until = "until there is room" if is_full else None
        if not is_full or key not in self._named:  # it is tried again each second
            self._lines.error(
                "a partition stays offline", partition=f"{key[0]}-{key[1]}", error=str(error), until=until
            )
        if is_full:
            self._named.add(key)
        self._notify()
        self._note_failures()
        is_damaged = key in self.directories.damaged and not is_full
        self._step(LogNotOpened(*key, effect.topic_id, str(error), is_damaged))

    @property
    def waits_for_room(self) -> bool:
        """Return whether the disk had no room for some logs."""
        return bool(self._waiting_for_room)

    def open_waiting(self) -> Iterator[None]:
        """Try again to make the logs for which the disk had no room, some in each slice."""
        for number, key in enumerate(list(self._waiting_for_room), 1):
            effect = self._waiting_for_room.pop(key, None)
            if effect is not None:
                self.open(effect)
            if not number % LOGS_PER_CALLBACK:
                yield

    def delete(self, effect: DeleteLog) -> None:
        """Delete the log of a partition that is gone."""
        key = (effect.topic, effect.partition)
        self._waiting_for_room.pop(key, None)  # before it is asked for again
        self._add(partial(self._delete_if_there, key))

    def _delete_if_there(self, key: TopicPartition) -> int:
        self._waiting_for_room.pop(key, None)
        self._named.discard(key)
        self._loaded_producers.pop(key, None)
        if key in self.directories.rivals:
            return self._keep_one(key, None)
        log = self.directories.logs.get(key)
        if log is not None:
            try:
                self.directories.delete(*key, self._unique_text(), self._ports.wall_ms())
                self._checkpoints.write_soon(log.parent)
            except StorageError as error:
                self._failed(key, log, error)
        damaged = self.directories.damaged.get(key)
        if damaged is not None:
            try:
                self.directories.delete_damaged(*key, self._unique_text(), self._ports.wall_ms())
                self._checkpoints.write_soon(damaged.parent)
            except StorageError as error:
                self._directory_failed(damaged.parent, error)
        return MOVED_US

    def set_aside(self, effect: SetLogAside) -> None:
        """Keep a log under another name."""
        self._add(partial(self._keep_one, (effect.topic, effect.partition), effect.topic_id))

    def _keep_one(self, key: TopicPartition, topic_id: Uuid | None) -> int:
        """Keep the log of that topic id, and set the partition's others aside."""
        producers: object = self._loaded_producers.pop(key, None)
        is_rival = key in self.directories.rivals
        strays, count = self.directories.strays, len(self.directories.strays)
        try:
            kept = self.directories.keep_one(*key, topic_id, self._unique_text)
            if kept is not None and is_rival:
                producers = kept.producers
            if kept is not None and isinstance(producers, ReplayedProducers):
                self._loaded_producers[key] = producers
        except StorageError as error:
            self._lines.error(
                "a log could not be set aside", partition=f"{key[0]}-{key[1]}", error=str(error)
            )
            self._note_failures()
        for directory in strays[count:]:
            self._lines.warning("a log was set aside: this broker does not host it", directory=directory)
            self._checkpoints.write_soon(directory.rpartition("/")[0])
        return MOVED_US


def _goes_with(change: Change | OpenLog, makings: Sequence[Making]) -> bool:
    """Return whether the log of a change may be made together with these."""
    if len(makings) == MADE_AT_ONCE or not isinstance(change, OpenLog):
        return False
    key = change.topic, change.partition
    return all(making.key != key for _, making in makings)
