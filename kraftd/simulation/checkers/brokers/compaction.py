"""P11: a compacted log against a model: what was sent, and at which offset it was acknowledged.

Each record of the log was sent. The last value of a key is there, or a later record of the key; if the last
one is a tombstone, no earlier value is there. Where the cleaner has been, each key is there once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kraftd.log.data.data_log import DataLog
from kraftd.simulation.checkers.brokers.partitions import PartitionKey
from kraftd.simulation.checkers.checker import Checker
from kraftd.wire.batch import iter_batches
from kraftd.wire.records import decode_records

if TYPE_CHECKING:
    from kraftd.simulation.brokers.broker_side import BrokerSide

Row = tuple[bytes, bytes | None]  # key and value
_READ_BYTES = 1 << 20


class CompactionChecker(Checker):
    """See the module. A loss of power may cut the end of a log, a kill may not."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self._sent: dict[PartitionKey, set[Row]] = {}
        self._known: dict[PartitionKey, dict[int, Row]] = {}  # acknowledged, by offset
        # Ends of logs when their process ended, on which disk of the broker, and whether with its power.
        self._ends: dict[tuple[int, PartitionKey], tuple[int, int, bool]] = {}

    def sent(self, key: PartitionKey, rows: list[Row]) -> None:
        self._sent.setdefault(key, set()).update(rows)

    def acknowledged(self, key: PartitionKey, base_offset: int, rows: list[Row]) -> None:
        """Note an acknowledged batch."""
        self._known.setdefault(key, {}).update(enumerate(rows, base_offset))

    # --- losses ---

    def died(self, broker_id: int, logs: list[DataLog], *, power_loss: bool) -> None:
        """Note where the logs of a process that ends have their ends; if it never opened one, where the
        process before it left that.
        """
        for log in logs:
            key = log.topic_id or b"", log.partition
            if key in self._sent:
                now = log.log_end, self.world.cluster.hosts[broker_id].data_disks, False
                end, disks, had_power_loss = self._ends.get((broker_id, key), now)
                self._ends[broker_id, key] = end, disks, had_power_loss or power_loss

    def opened(self, broker_id: int, log: DataLog) -> bool:
        """Return whether a log has lost its end since its process ended, as only a loss of power may do."""
        key = log.topic_id or b"", log.partition
        before, disks, power_loss = self._ends.pop((broker_id, key), (0, 0, False))
        is_same_disk = self.world.cluster.hosts[broker_id].data_disks == disks
        if log.log_end < before and is_same_disk and not power_loss:
            self.fail("P11", f"{log!r} of {broker_id} ended at {before} before a kill")
        return log.log_end < before

    def lost_end(self, key: PartitionKey, end: int) -> None:
        """The records from an offset on are lost by right."""
        known = self._known.get(key, {})
        self._known[key] = {offset: row for offset, row in known.items() if offset < end}

    # --- at rest ---

    def at_rest(self, side: BrokerSide) -> None:
        """Check the survivors in the logs of a broker."""
        for place, log in side.logs.directories.logs.items():
            key = log.topic_id or b"", log.partition
            if key in self._sent:
                self._check(key, log, side.cleaning.cleaner.cleaned_to(place))

    def _check(self, key: PartitionKey, log: DataLog, cleaned_to: int) -> None:
        rows, known, sent = _rows_of(log), self._known.get(key, {}), self._sent.get(key, set())
        of_key: dict[bytes, list[int]] = {}
        for offset, row in rows:
            if row not in sent or known.get(offset, row) != row:
                self.fail("P11", f"{log!r} has {row} at {offset}, where {known.get(offset)} was acknowledged")
            of_key.setdefault(row[0], []).append(offset)
        for name, offsets in of_key.items():
            if offsets != sorted(set(offsets)):
                self.fail("P11", f"{log!r} has the offsets {offsets} of {name!r} out of order")
            cleaned = [one for one in offsets if one < cleaned_to]
            if len(cleaned) > 1:
                self.fail("P11", f"{log!r} is cleaned to {cleaned_to}, and has {name!r} at {cleaned}")
        for offset, (name, value) in sorted(
            {row[0]: (at, row) for at, row in sorted(known.items())}.values()
        ):
            found = of_key.get(name, [])
            is_gone = value is None and not found
            if not is_gone and (not found or found[-1] < offset):
                self.fail(
                    "P11", f"{log!r}: the last value of {name!r} was {value!r} at {offset}, not {found}"
                )
        kinds = self.world.trace.kinds
        kinds["compacted log checked"] += 1
        kinds["records compacted away"] += bool(cleaned_to) and len(rows) < log.log_end - log.log_start


def _rows_of(log: DataLog) -> list[tuple[int, Row]]:
    found, offset = list[tuple[int, Row]](), log.log_start
    while offset < log.log_end:
        batches = list(iter_batches(log.read(offset, _READ_BYTES, log.log_end) or b""))
        if not batches:
            break
        for batch in batches:
            found += [
                (one.offset, (bytes(one.key or b""), None if one.value is None else bytes(one.value)))
                for one in decode_records(batch)
            ]
        offset = batches[-1].header.next_offset
    return found
