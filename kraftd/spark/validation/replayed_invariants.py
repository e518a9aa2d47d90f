"""The invariants of `invariants`, without Spark: the rows that break each.

Records of aborted transactions are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kraftd.spark.inputs.extent import BEFORE_THE_LOG
from kraftd.spark.replay.brokers import broker_events
from kraftd.spark.replay.partitions import partition_replay
from kraftd.spark.replay.source import Replay, and_next, by_key, without
from kraftd.spark.replay.topics import topic_lives
from kraftd.spark.tables.brokers import REGISTERED, UNREGISTERED
from kraftd.spark.tables.columns import Row
from kraftd.spark.tables.filling import KEY
from kraftd.spark.tables.topics import CREATED
from kraftd.spark.validation.findings import break_text

_NOBODY = (True, True)
"""A broker that is not registered counts as fenced and as shutting down."""


def broker_epochs_grow(replay: Replay) -> Iterator[Row]:
    """C3."""
    newest: dict[int, int] = {}
    for row in broker_events(replay, whole=True):
        before, epoch = newest.get(row["broker_id"]), row["broker_epoch"]
        registers = row["type"] == REGISTERED
        if before is not None and (epoch <= before if registers else epoch != before):
            names = ("offset", "type", "broker_id", "broker_epoch")
            yield {name: row[name] for name in names} | {"epoch_before": before}
        newest[row["broker_id"]] = epoch if before is None else max(before, epoch)


def isr_within_replicas(replay: Replay) -> Iterator[Row]:
    """C4: the ISR and the leader."""
    for row in partition_replay(replay, whole=True):
        isr, replicas, leader = row["isr"], row["replicas"], row["leader"]
        if row["type"] == "ClearElrRecord" or isr is None:
            continue
        has_strangers = replicas is not None and bool(without(isr, replicas))
        is_outside = leader is not None and leader >= 0 and leader not in isr
        if has_strangers or (is_outside and row["leader_recovery_state"] == 0):
            names = ("offset", *KEY, "leader", "isr", "replicas")
            yield {name: row[name] for name in names}


def leader_epochs_grow(replay: Replay) -> Iterator[Row]:
    """C4: epochs of partitions."""
    for (topic_id, partition_id), rows in by_key(partition_replay(replay, whole=True), *KEY).items():
        for old, row in and_next(rows):
            if row is None or not (
                _is_less(row["leader_epoch"], old["leader_epoch"])
                or not _is_less(old["partition_epoch"], row["partition_epoch"], unknown=True)
            ):
                continue
            yield {
                "offset": row["offset"],
                "topic_id": topic_id,
                "partition_id": partition_id,
                "old_leader_epoch": old["leader_epoch"],
                "leader_epoch": row["leader_epoch"],
                "old_partition_epoch": old["partition_epoch"],
                "partition_epoch": row["partition_epoch"],
            }


def _is_less(one: int | None, other: int | None, *, unknown: bool = False) -> bool:
    return unknown if one is None or other is None else one < other


def inactive_brokers_join_nothing(replay: Replay) -> Iterator[Row]:
    """C5. The records of a batch are one event: what it tells of brokers holds for all its partitions."""
    told = broker_events(replay, whole=True)
    events = [(_batch(row), 0, row["offset"], row) for row in told]
    events += [
        (row["batch_offset"], 1, row["offset"], row)
        for row in partition_replay(replay, whole=True)
        if row["type"] == "PartitionChangeRecord"
    ]
    states: dict[int, tuple[bool, bool]] = {}
    for _, later, _, row in sorted(events, key=lambda event: event[:3]):
        if not later:
            states[row["broker_id"]] = _after(states.get(row["broker_id"], _NOBODY), row)
            continue
        for broker_id in _admitted(row):
            fenced, shutting_down = states.get(broker_id, _NOBODY)
            if fenced or shutting_down:
                place = {name: row[name] for name in ("offset", *KEY)}
                yield place | {"broker_id": broker_id, "fenced": fenced, "shutting_down": shutting_down}


def _batch(row: Row) -> int:
    offset: int = BEFORE_THE_LOG if row["offset"] < 0 else row["batch_offset"]
    return offset


def _after(state: tuple[bool, bool], row: Row) -> tuple[bool, bool]:
    """Whether a broker is fenced and shutting down after one of its records."""
    if row["type"] == UNREGISTERED:
        return _NOBODY
    fenced, shutting_down = row["became_fenced"], row["became_shutting_down"]
    return state[0] if fenced is None else fenced, state[1] if shutting_down is None else shutting_down


def _admitted(row: Row) -> list[int]:
    """The brokers that join the ISR or become the leader with a change."""
    if row["isr"] is None or row["old_isr"] is None:
        return []
    joined = without(row["isr"], row["old_isr"])
    leader, old_leader = row["leader"], row["old_leader"]
    if leader is None or old_leader is None or leader < 0 or leader in (old_leader, *joined):
        return joined
    return [*joined, leader]


def producer_ids_are_disjoint(replay: Replay) -> Iterator[Row]:
    """C6."""
    rows = replay.history(["broker_id", "next_producer_id"], ["ProducerIdsRecord"])
    for before, row in and_next(rows):
        if row is not None and row["next_producer_id"] <= before["next_producer_id"]:
            yield {
                "offset": row["offset"],
                "broker_id": row["broker_id"],
                "next_before": before["next_producer_id"],
                "next_producer_id": row["next_producer_id"],
            }


def topic_names_are_unique(replay: Replay) -> Iterator[Row]:
    """C7."""
    lives = [life | {"topic_id": topic_id} for topic_id, life in topic_lives(replay, whole=True).items()]
    for group in by_key(lives, "name").values():
        for before, life in and_next(sorted(group, key=lambda life: (_created(life), life["topic_id"]))):
            if life is None:
                continue
            removed = before["removed_offset"]
            if removed is None or removed > _created(life):
                yield {
                    "offset": _created(life),
                    "name": life["name"],
                    "topic_id": life["topic_id"],
                    "before_id": before["topic_id"],
                }
    for (topic_id,), rows in by_key(replay.history(["topic_id", "name"], [CREATED]), "topic_id").items():
        if len(rows) > 1:
            offset, name = max(row["offset"] for row in rows), max(row["name"] for row in rows)
            yield {"offset": offset, "name": name, "topic_id": topic_id, "before_id": topic_id}


def _created(life: Row) -> int:
    offset: int | None = life["created_offset"]
    return BEFORE_THE_LOG if offset is None else offset


INVARIANTS: dict[str, Callable[[Replay], Iterator[Row]]] = {
    "C3 broker epochs grow": broker_epochs_grow,
    "C4 ISR within replicas, leader within ISR": isr_within_replicas,
    "C4 leader and partition epochs grow": leader_epochs_grow,
    "C5 inactive brokers lead and join nothing": inactive_brokers_join_nothing,
    "C6 producer id blocks are disjoint": producer_ids_are_disjoint,
    "C7 topic names and ids are unique": topic_names_are_unique,
}


OF_PARTITIONS = (
    "C4 ISR within replicas, leader within ISR",
    "C4 leader and partition epochs grow",
    "C5 inactive brokers lead and join nothing",
)
"""Those whose rows are of one partition each."""


def first_row(replay: Replay, name: str) -> Row | None:
    """The first row that breaks an invariant; None if there is none."""
    return first_of(INVARIANTS[name](replay))


def first_of(rows: Iterable[Row]) -> Row | None:
    """The row of the lowest offset."""
    return min(rows, key=lambda row: row["offset"], default=None)


def first_break(replay: Replay, name: str) -> str | None:
    """The first row that breaks an invariant, in words."""
    row = first_row(replay, name)
    return None if row is None else break_text(replay.extent, row)
