"""Whether a transaction that is open in a partition hangs, and why. No IO.

A transaction ends in a partition by a marker, which its coordinator has written. It hangs if no coordinator
will: the partition is in no transaction there that is still to end. It then holds up readers of committed
records, and compaction, for good. KIP-664 names the causes.
"""

from __future__ import annotations

from kraftd.named_tuple import NamedTuple

# States of a transactional id, by Kafka's names.
EMPTY, ONGOING = "Empty", "Ongoing"
DECIDED = {"PrepareCommit": "committed", "PrepareAbort": "aborted", "PrepareEpochFence": "aborted"}
NEVER_TIMED_OUT_MS = 2**31 - 1  # the timeout of a transaction of two phases (KIP-939)
UNKNOWN = -1


class OpenTransaction(NamedTuple):
    """A transaction that is open in a partition, as the partition's leader knows it (DescribeProducers).

    start_offset: of its first record. last_ms: the time of its newest record there.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_ms: int


class IdState(NamedTuple):
    """A transactional id as its coordinator, an address, describes it (DescribeTransactions).

    start_ms is -1 before the first transaction. partitions: those whose markers are not written yet.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int
    partitions: frozenset[tuple[str, int]]
    coordinator: str

    @property
    def is_open(self) -> bool:
        return self.state == ONGOING or self.state in DECIDED

    def age_ms(self, now_ms: int) -> int | None:
        """How long its transaction has been open; None without one."""
        return max(0, now_ms - self.start_ms) if self.is_open and self.start_ms >= 0 else None


class Judged(NamedTuple):
    """An open transaction of a partition, its transactional id if it has one, and what is to come."""

    open: OpenTransaction
    owner: IdState | None
    hangs: bool
    why: str


def judge(open: OpenTransaction, owner: IdState | None, now_ms: int) -> Judged:
    """Judge a transaction. `owner` has its producer id at a coordinator, None if none has.

    `open` must have been seen before and after `owner`: only then is it known to be of the same time.
    """
    if owner is None:
        why = f"no coordinator knows producer {open.producer_id}, so that nothing ends it"
        return Judged(open, None, True, why)
    if owner.is_open and (open.topic, open.partition) in owner.partitions:
        return Judged(open, owner, False, outlook(owner, now_ms))
    if owner.is_open:
        why = f"the transaction of {owner.transactional_id} ({owner.state}) is without this partition"
    else:
        why = f"{owner.transactional_id} has no open transaction ({owner.state})"
    return Judged(open, owner, True, why)


def outlook(state: IdState, now_ms: int) -> str:
    """What is to come of a transactional id."""
    if state.state in DECIDED:
        left = len(state.partitions)
        return f"{DECIDED[state.state]}; {_count(left, 'marker')} to be written"
    age_ms = state.age_ms(now_ms)
    if age_ms is None:
        return "no transaction is open"
    if state.timeout_ms == NEVER_TIMED_OUT_MS:
        return "its producer alone ends it (two phases)"
    left_ms = state.timeout_ms - age_ms
    if left_ms > 0:
        return f"its producer ends it, or its timeout in {duration_text(left_ms)}"
    return f"past its timeout by {duration_text(-left_ms)}: its coordinator is about to abort it"


def duration_text(duration_ms: int) -> str:
    """`3 h 20 min`, `2 min 5 s`, `7 s`: at most two units; below a second `0 s`."""
    units = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
    for at, (unit_ms, name) in enumerate(units):
        if duration_ms >= unit_ms or unit_ms == 1000:
            text = f"{duration_ms // unit_ms} {name}"
            rest = duration_ms % unit_ms // units[at + 1][0] if at + 1 < len(units) else 0
            return f"{text} {rest} {units[at + 1][1]}" if rest else text
    raise AssertionError("unreachable")


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
