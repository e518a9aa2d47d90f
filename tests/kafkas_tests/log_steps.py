"""The steps of Kafka's logs, and which of kraftd's they are compared with."""

from __future__ import annotations

from collections.abc import Callable

from kraftd.log.errors import StorageError
from tests.kafkas_tests.agent import Columns
from tests.kafkas_tests.logs import KraftdsLog, Unasked

STEPS: dict[str, Callable[[KraftdsLog, Columns], str | None]] = {
    "appendAsFollower": KraftdsLog.append_as_follower,
    "appendAsLeader": KraftdsLog.append_as_leader,
    "assignEpochStartOffset": KraftdsLog.assign_epoch,
    "close": KraftdsLog.close,
    "collectAbortedTransactions": KraftdsLog.aborted,
    "deleteOldSegments": KraftdsLog.delete_old,
    "endOffsetForEpoch": KraftdsLog.end_of_epoch,
    "fetchOffsetByTimestamp": KraftdsLog.offset_by_timestamp,
    "flush": lambda log, _: log.log.flush(log.now_ms),
    "flushUptoOffsetExclusive": lambda log, _: None,
    "hasLateTransaction": KraftdsLog.late,
    "hasOngoingTransaction": KraftdsLog.ongoing,
    "maybeIncrementHighWatermark": KraftdsLog.increment_high_watermark,
    "maybeIncrementLogStartOffset": KraftdsLog.increment_log_start,
    "maybeStartTransactionVerification": KraftdsLog.verify,
    "maybeUpdateHighWatermark": KraftdsLog.move_high_watermark,
    "read": KraftdsLog.read,
    "removeExpiredProducers": KraftdsLog.expire,
    "roll": KraftdsLog.roll,
    "takeProducerSnapshot": KraftdsLog.snapshot,
    "truncateFullyAndStartAt": KraftdsLog.truncate_fully,
    "truncateTo": KraftdsLog.truncate_to,
    "updateConfig": KraftdsLog.configure,
    "updateHighWatermark": KraftdsLog.move_high_watermark,
}


class Logs:
    """Kafka's logs by their numbers; those that kraftd does not follow any further are None."""

    def __init__(self) -> None:
        self.logs: dict[str, KraftdsLog | None] = {}
        self._asked: Columns = []
        self.unasked: list[str] = []

    def asked(self, kind: str, columns: Columns) -> None:
        self._asked = [kind, *columns]

    def answered(self, kind: str, columns: Columns) -> tuple[str, str | None]:
        """The name of a step, and how its result or what it leaves differs from Kafka's."""
        asked, *arguments = self._asked
        try:
            if asked == "create":
                return asked, self._created(arguments, kind, columns)
            if self.logs.get(arguments[0]) is None:
                return "not followed", None
            return arguments[1], self._stepped(arguments, kind, columns)
        except Unasked as reason:
            self.unasked.append(f"{arguments[1]}: {reason}")
            if asked == "create":
                self.logs[columns[0]] = None
            else:
                self.logs[arguments[0]] = None
            return "unasked", None

    def _created(self, arguments: Columns, kind: str, columns: Columns) -> str | None:
        if arguments[9] == "true":
            raise Unasked("tiered storage")
        try:
            log = KraftdsLog(arguments)
        except StorageError as error:
            self.logs[columns[0]] = None
            return None if kind == "failed" else f"refused: {error}"
        if kind == "failed":
            return "opened"
        for other in self.logs.values():
            if other is not None and other.directory == log.directory:
                other.has_successor = True
        self.logs[columns[0]] = log
        return self._compared(columns[0], log.differs(columns[1:]))

    def _compared(self, number: str, difference: str | None) -> str | None:
        if difference is not None:
            self.logs[number] = None  # what follows would differ, too
        return difference

    def _stepped(self, arguments: Columns, kind: str, columns: Columns) -> str | None:
        number, name, now_ms, shape, epochs, snapshots, verifies, *rest = arguments
        log = self.logs[number]
        assert log is not None
        if name not in STEPS:
            raise Unasked("no such step")
        log.now_ms = int(now_ms)
        log.follow_test(shape, epochs, snapshots.split(), verifies == "true")
        found = STEPS[name](log, rest)
        if name == "maybeStartTransactionVerification" and kind == "done":
            log.guards[columns[0]] = log.last_guard
        if kind == "failed":
            wanted, state = f"failed {columns[0]}", columns[2:]
            if columns[0] == "KAFKA_STORAGE_ERROR":
                raise Unasked("a failure of the disk")
            log.follow_epochs(state[5])
            if found != wanted:
                return self._compared(number, f"{found}")
        else:
            wanted, state = columns[0], columns[1:]
            if (
                found is not None
                and found != wanted
                and not (name == "read" and is_read_alike(found, wanted))
                and not (name == "close" and not wanted)  # the test has deleted the directory
            ):
                return self._compared(number, f"{found}")
        return self._compared(number, log.differs(state))


def is_read_alike(ours: str, kafkas: str) -> bool:
    """Return whether kraftd reads on where Kafka's read ends with a segment."""
    return bool(kafkas) and ours.startswith(kafkas)
