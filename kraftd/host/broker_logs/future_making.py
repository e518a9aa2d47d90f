"""Makes the future logs that requests ask for, one after the other, in a thread.

A request may ask for thousands. Until its log is made, a move may be cancelled or asked for again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from kraftd.broker_node.effects import LogMove, MoveLogs
from kraftd.broker_node.events import MoveBegun, MovesBegun
from kraftd.ground.event import Event
from kraftd.ground.pace import Pace
from kraftd.host.ports import Log, Ports
from kraftd.log.data.data_log import DataLog
from kraftd.log.errors import StorageError
from kraftd.log.offset_checkpoint import TopicPartition
from kraftd.log_dirs.directories import LogDirectories
from kraftd.log_dirs.log_making import LogMaking
from kraftd.log_dirs.log_opening import LogReopening
from kraftd.named_tuple import NamedTuple
from kraftd.wire.error_code import ErrorCode

BEGUN_US = 50  # of work for a future log that is there, or cannot be made


class MovesAsked:
    """A request for moves, and what has been begun of it."""

    def __init__(self, effect: MoveLogs) -> None:
        self.id = effect.request_id
        self.count = len(effect.moves)
        self.begun: list[MoveBegun] = []

    def __repr__(self) -> str:
        return f"<MovesAsked, {len(self.begun)} of {self.count} begun>"


class Asked(NamedTuple):
    """A move whose future log is to be made."""

    move: LogMove
    request: MovesAsked

    @property
    def key(self) -> TopicPartition:
        return self.move.topic, self.move.partition


def _storage_error(key: TopicPartition) -> MoveBegun:
    return MoveBegun(*key, None, error=ErrorCode.KAFKA_STORAGE_ERROR)


class FutureMaking:
    """`step` steps the node. `begin_copy` takes up a log that was made, `drop` deletes one."""

    def __init__(
        self,
        directories: LogDirectories,
        ports: Ports,
        step: Callable[[Event], None],
        new_unique_text: Callable[[], str],
        begin_copy: Callable[[TopicPartition, DataLog], MoveBegun],
        drop: Callable[[TopicPartition], None],
    ) -> None:
        self._directories = directories
        self._ports = ports
        self._lines: Log = ports.log
        self._step = step
        self._unique_text = new_unique_text
        self._begin_copy = begin_copy
        self._drop = drop
        self._asked: dict[TopicPartition, Asked] = {}  # the last for each
        self._to_make: deque[Asked] = deque()  # the first one is under way
        self.is_closed = False

    def __repr__(self) -> str:
        return f"<FutureMaking, {len(self._to_make)} to make>"

    def begin(self, effect: MoveLogs) -> None:
        """Make future logs: MoveBegun comes back for each, then MovesBegun for all."""
        request = MovesAsked(effect)
        for move in effect.moves:
            one = self._asked[move.topic, move.partition] = Asked(move, request)
            self._to_make.append(one)
        if len(self._to_make) == len(effect.moves):  # else one is under way
            self._ports.timer.call_soon(self._make_next)

    def cancel(self, key: TopicPartition) -> None:
        """Delete the future log of a partition as soon as it is made."""
        self._asked.pop(key, None)

    def close(self) -> None:
        """Make no further log."""
        self.is_closed = True

    def _make_next(self) -> None:
        pace = Pace()
        while self._to_make and not self.is_closed:
            one = self._to_make[0]
            found = self._begin(one.move) if self._is_wanted(one) else None
            if isinstance(found, LogMaking):
                self._make(one, found)
                return
            self._begun(one, found)
            if pace.spent(BEGUN_US):
                self._ports.timer.call_soon(self._make_next)
                return

    def _is_wanted(self, one: Asked) -> bool:
        """Return whether its move was neither cancelled nor asked for again."""
        return self._asked.get(one.key) is one

    def _begin(self, move: LogMove) -> MoveBegun | LogMaking:
        key, directories = (move.topic, move.partition), self._directories
        log, target = directories.logs.get(key), directories.directories[move.path]
        if log is None or move.path in directories.offline:
            return _storage_error(key)
        future = directories.futures.get(key)
        closed = directories.closed_futures.get(key)
        if any(one is not None and one.parent != move.path for one in (future, closed)):
            self._drop(key)
        if key in directories.closed_futures:
            return self._not_begun(key, directories.closed_futures[key].error)
        try:
            found = directories.begin_create(
                *key,
                log.topic_id,
                self._ports.wall_ms(),
                directory_id=target.directory_id,
                is_new=False,
                unique=self._unique_text(),
            )
        except (StorageError, ValueError) as error:
            return self._not_begun(key, error)
        assert not isinstance(found, LogReopening)  # those are of no future log
        return found if isinstance(found, LogMaking) else self._begin_copy(key, found)

    def _not_begun(self, key: TopicPartition, error: Exception) -> MoveBegun:
        self._lines.error("a log is not moved", partition=f"{key[0]}-{key[1]}", error=str(error))
        return _storage_error(key)

    def _make(self, one: Asked, making: LogMaking) -> None:
        made = partial(self._made, one, making)
        self._ports.work_threads.run(making.run, made, self._ports.failed)

    def _made(self, one: Asked, making: LogMaking, _result: None) -> None:
        if self.is_closed:
            return  # the directories have accounted for it
        found: MoveBegun | DataLog | LogMaking | None
        try:
            found = self._directories.end_create(making, self._not_made)
        except StorageError as error:
            found = self._not_begun(one.key, error)
        if isinstance(found, LogMaking):
            self._make(one, found)
            return
        if isinstance(found, DataLog):
            present = self._directories.logs.get(one.key)
            if self._is_wanted(one) and present is not None and present.parent != found.parent:
                found = self._begin_copy(one.key, found)
            else:
                self._drop(one.key)
                found = None
        self._begun(one, found)
        self._make_next()

    def _not_made(self, path: str, error: StorageError) -> None:
        self._lines.error("no log could be made", error=str(error))

    def _begun(self, one: Asked, found: MoveBegun | None) -> None:
        """The first of `_to_make` is over: with None, the move was ended meanwhile, which is no error."""
        self._to_make.popleft()
        request = one.request
        request.begun.append(found or MoveBegun(*one.key, None))
        if self._is_wanted(one):
            del self._asked[one.key]
            self._step(request.begun[-1])
        if len(request.begun) == request.count:
            self._step(MovesBegun(request.id, tuple(request.begun)))
