"""Kafka's ProducerStateManager beside kraftd's ProducerStates, step by step."""

from __future__ import annotations

import copy
from collections.abc import Callable

from kraftd.partition.config import PartitionConfig
from kraftd.partition.producer_entry import Origin, ProducerEntry, ProducerError, SentBatch
from kraftd.partition.producers import NO_GUARD, ProducerStates
from kraftd.wire.batch import BatchHeader, parse_header
from kraftd.wire.end_marker import build_end_marker
from kraftd.wire.producer_snapshot import CorruptSnapshot, decode_producers, encode_producers
from tests.kafkas_tests.agent import Columns

_TRANSACTIONAL, _CONTROL = 0x10, 0x20


def shown(entry: ProducerEntry) -> str:
    """An entry as the agent writes it."""
    batches = ";".join(",".join(map(str, each)) for each in entry.batches)
    head = (
        entry.producer_id, entry.producer_epoch, entry.coordinator_epoch, entry.last_timestamp_ms,
        entry.transaction_start,
    )  # fmt: skip
    return ":".join([*map(str, head), batches])


def entry_of(text: str) -> ProducerEntry:
    *numbers, batches = text.split(":")
    some = (each.split(",") for each in batches.split(";") if each)
    producer_id, epoch, coordinator_epoch, timestamp_ms, start = map(int, numbers)
    sent = tuple(SentBatch(*map(int, each)) for each in some)
    return ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp_ms, start, sent)


def data_header(columns: Columns) -> BatchHeader:
    """The header of a data batch: epoch, first and last sequence, timestamp, first and last offset, kind."""
    epoch, first, _, timestamp_ms, offset, last_offset = map(int, columns[:6])
    delta = last_offset - offset
    attributes = _TRANSACTIONAL if columns[6] == "true" else 0
    stamps = timestamp_ms, timestamp_ms
    return BatchHeader(offset, 49, -1, 2, 0, attributes, delta, *stamps, 0, epoch, first, delta + 1)


class Append:
    """What one producer appends at once, as Kafka's ProducerAppendInfo."""

    def __init__(self, manager: str, origin: str, current: str) -> None:
        self.manager = manager
        self.origin = Origin[origin]
        self.current = entry_of(current)


class Managers:
    """Kafka's managers of producers, and the appends that are under way."""

    def __init__(self) -> None:
        self.states: dict[str, ProducerStates] = {}
        self.configs: dict[str, PartitionConfig] = {}
        self.manager = ""  # the one made last
        self.appends: dict[str, Append] = {}
        self.pending: tuple[str, ProducerStates] | None = None  # an append, and the states before it

    def made(self, columns: Columns) -> None:
        self.manager = columns[0]
        self.states[self.manager] = ProducerStates()
        self.configs[self.manager] = PartitionConfig(
            producer_id_expiration_ms=int(columns[1]),
            transaction_max_timeout_ms=int(columns[2]),
            verifies_transactions=False,
        )
        self.pending = None

    def begun(self, columns: Columns) -> None:
        self.appends[columns[0]] = Append(columns[3] or self.manager, columns[1], columns[2])

    def _states_of(self, append_id: str) -> ProducerStates:
        """The states with what an append has done so far. Others that were not put into effect are undone."""
        append = self.appends[append_id]
        if self.pending is not None and self.pending[0] != append_id:
            self._undo()
        states = self.states[append.manager]
        if self.pending is None:
            self.pending = append_id, copy.deepcopy(states)
            if append.current == ProducerEntry(append.current.producer_id):
                states.entries.pop(append.current.producer_id, None)
        return states

    def _undo(self) -> None:
        if self.pending is not None:
            self.states[self.appends[self.pending[0]].manager] = self.pending[1]
            self.pending = None

    def appended(self, kind: str, columns: Columns) -> str | None:
        """How a batch's outcome differs from Kafka's; None if it does not."""
        append_id, *columns = columns
        append, states = self.appends[append_id], self._states_of(append_id)
        producer_id = append.current.producer_id
        answer, after = columns[-2:]
        version = 0
        if kind == "data":
            header, view = data_header(columns)._replace(producer_id=producer_id), memoryview(b"")
        else:
            epoch, offset, timestamp_ms, version = map(int, columns[2:6])
            data = build_end_marker(
                producer_id, epoch, is_commit=columns[0] == "COMMIT", coordinator_epoch=int(columns[1]),
                timestamp_ms=timestamp_ms,
            )  # fmt: skip
            data[:8] = offset.to_bytes(8, "big")
            header, view = parse_header(bytes(data)), memoryview(data)
        try:
            done = states.append(
                header, view, append.origin, self.configs[append.manager], transaction_version=version
            )
        except ProducerError as error:
            return None if answer == f"refused {error.error.name}" else f"{error}"
        if answer.startswith("refused"):
            return "not refused"
        text = "none" if done is None else " ".join(map(str, done[:4])).replace("T", "t").replace("F", "f")
        if kind == "marker" and text != answer:
            return text
        ours = entry_of(shown(states.entries[producer_id]))
        theirs = entry_of(after)
        is_same = ours.batches[len(ours.batches) - len(theirs.batches) :] == theirs.batches
        heads = [shown(each).rpartition(":")[0] for each in (ours, theirs)]
        return None if is_same and heads[0] == heads[1] else shown(ours)

    def operated(self, columns: Columns) -> str | None:
        """How an operation's result, or what it leaves, differs from Kafka's; None if it does not."""
        manager, name, now_ms, arguments, before, answer, _, *entries = columns
        if name == "update":
            if self.pending is None or self.pending[0] != arguments:
                self._append_nothing(arguments)
            self.pending = None
        self._undo()
        states = self.states[manager]
        found = OPERATIONS[name](self, states, arguments.split(","), int(now_ms), before, manager)
        if found is not None and found != answer:
            return found
        ours, theirs = sorted(map(shown, states)), sorted(entries[0].split() if entries else ())
        if ours != theirs:
            return f"leaves {ours}"
        return None

    def _append_nothing(self, append_id: str) -> None:
        """Append a control batch whose marker was cleaned away."""
        append, states = self.appends[append_id], self._states_of(append_id)
        offset = states.end_offset
        header = BatchHeader(offset, 49, -1, 2, 0, _CONTROL, 0, -1, -1, append.current.producer_id, -1, -1, 0)
        states.append(header, memoryview(b""), append.origin, self.configs[append.manager])

    # --- the operations: each gives its answer, None without one ---

    def complete(self, states: ProducerStates, arguments: list[str]) -> None:
        """Complete a transaction that no marker has completed."""
        producer_id, first, last, is_aborted = arguments[0].split()
        entry = states.entries[int(producer_id)]
        if entry.transaction_start != int(first):
            return
        data = build_end_marker(
            entry.producer_id, entry.producer_epoch, is_commit=is_aborted == "false",
            coordinator_epoch=entry.coordinator_epoch, timestamp_ms=entry.last_timestamp_ms,
        )  # fmt: skip
        data[:8] = int(last).to_bytes(8, "big")
        states.append(
            parse_header(bytes(data)), memoryview(data), Origin.COORDINATOR, self.configs[self.manager]
        )
        states.entries[entry.producer_id] = entry  # Kafka's entry ends with its own marker

    def expire(self, states: ProducerStates, arguments: list[str], manager: str) -> None:
        states.expire(self.configs[manager], int(arguments[0]))

    def reload(self, states: ProducerStates, arguments: list[str], files: str, manager: str) -> None:
        """Load the newest snapshot that is in range and sound, unless the end is the states' own."""
        start, end, now_ms = map(int, arguments)
        if end == states.end_offset:
            states.replicated(start)
            return
        found = dict(each.split("=") for each in files.split())
        offsets = {int(name.partition(".")[0]): data for name, data in found.items()}
        for offset in sorted(offsets, reverse=True):
            if start < offset <= end:
                try:
                    entries = decode_producers(bytes.fromhex(offsets[offset]))
                except CorruptSnapshot:
                    continue
                states.load(entries, offset, self.configs[manager], now_ms)
                return
        states.load((), start, self.configs[manager], now_ms)


def _snapshot_differs(states: ProducerStates, files: str) -> str | None:
    """Whether the newest file has other bytes than kraftd's; the order of producers is Java's map's."""
    newest = max(files.split())  # names have leading zeros
    content = bytes.fromhex(newest.partition("=")[2])
    order = [each.producer_id for each in decode_producers(content)]
    ours = sorted(states.snapshot(), key=lambda each: order.index(each.producer_id))
    return None if encode_producers(ours) == content else f"{ours}"


def _verified(states: ProducerStates, arguments: list[str], now_ms: int) -> str:
    producer_id, sequence, epoch = map(int, arguments[:3])
    header = data_header([str(epoch), str(sequence), "0", "0", "0", "0", "true"])
    header = header._replace(producer_id=producer_id)
    guard = states.start_verification(header, now_ms, supports_epoch_bump=arguments[3] == "true")
    known = states._verifications[producer_id]
    assert guard != NO_GUARD
    return f"{known.lowest_sequence} {known.producer_epoch}"


def _stable_after(states: ProducerStates, arguments: list[str]) -> str:
    producer_id, _, last, _ = arguments[0].split()
    return str(states._stable_after(int(producer_id), int(last)))


def _unstable(states: ProducerStates) -> str:
    offset = states.first_unstable_offset()
    return "none" if offset is None else str(offset)


def _forget(states: ProducerStates, arguments: list[str]) -> None:
    states._verifications.pop(int(arguments[0]), None)


def _ends_at(states: ProducerStates, offset: int) -> None:
    states.end_offset = offset


Operation = Callable[[Managers, ProducerStates, list[str], int, str, str], str | None]

OPERATIONS: dict[str, Operation] = {
    "clearVerificationStateEntry": lambda of, states, a, *_: _forget(states, a),
    "completeTxn": lambda of, states, a, *_: of.complete(states, a),
    "deleteSnapshotsBefore": lambda *_: None,
    "firstUnstableOffset": lambda of, states, *_: _unstable(states),
    "hasLateTransaction": lambda of, states, a, now, before, manager: str(
        states.has_late_transaction(of.configs[manager], int(a[0]))
    ).lower(),
    "isEmpty": lambda of, states, *_: str(not states.entries and not states._completed).lower(),
    "lastStableOffset": lambda of, states, a, *_: _stable_after(states, a),
    "maybeCreateVerificationStateEntry": lambda of, states, a, now, *_: _verified(states, a, now),
    "onHighWatermarkUpdated": lambda of, states, a, *_: states.replicated(int(a[0])),
    "onLogStartOffsetIncremented": lambda of, states, a, *_: states.replicated(int(a[0])),
    "removeExpiredProducers": lambda of, states, a, now, before, manager: of.expire(states, a, manager),
    "removeStraySnapshots": lambda *_: None,
    "takeSnapshot": lambda of, states, a, now, files, manager: _snapshot_differs(states, files),
    "truncateAndReload": lambda of, states, a, now, before, manager: of.reload(states, a, before, manager),
    "truncateFullyAndReloadSnapshots": lambda of, states, a, now, before, manager: states.load(
        (), 0, of.configs[manager], now
    ),
    "truncateFullyAndStartAt": lambda of, states, a, now, before, manager: states.load(
        (), int(a[0]), of.configs[manager], now
    ),
    "update": lambda *_: None,
    "updateMapEndOffset": lambda of, states, a, *_: _ends_at(states, int(a[0])),
}
