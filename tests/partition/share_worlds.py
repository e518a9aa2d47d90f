"""Random share consumers beside Kafka's share partition: equal records, answers, offsets and states."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple, Protocol

from kraftd.ground.effect import Effect
from kraftd.groups.share_state.state_batches import StateBatch, combined
from kraftd.partition.share.aborted import NO_PRODUCER, ReadBatch
from kraftd.partition.share.acknowledging import Acknowledgement, acknowledge, expire, release_all
from kraftd.partition.share.acquiring import ReadRecords, acquire
from kraftd.partition.share.effects import Change, WriteState
from kraftd.partition.share.share_partition import ShareLimits, SharePartition, Then
from kraftd.partition.share.states import ACQUIRED, RecordState
from kraftd.wire.error_code import ErrorCode

STEPS = 60
MEMBERS = ("a", "b", "c")
REFUSALS = (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT)


class Kafka(Protocol):
    """Kafka's share partition, or what it answered once."""

    def ask(self, *words: object) -> list[str]: ...


def recorded() -> list[Path]:
    """What Kafka was asked and answered in some worlds, whose seeds are the names."""
    return sorted(Path(__file__).with_name("recorded_shares").glob("*.txt"))


class Recorder:
    """Notes what Kafka is asked and answers."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        self.text = ""

    def ask(self, *words: object) -> list[str]:
        *answer, in_flight = self.kafka.ask(*words)
        answer.append(listed(joined(unlisted(in_flight))))
        self.text += f"{' '.join(map(str, words))}\n    {' '.join(answer)}\n"
        return answer


class Recorded:
    """Answers as Kafka did; another question shows that a step went otherwise."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text().splitlines()
        self.left = list(zip(lines[::2], lines[1::2], strict=True))

    def ask(self, *words: object) -> list[str]:
        question, answer = self.left.pop(0)
        assert " ".join(map(str, words)) == question
        return answer.split()


def listed(rows: list[str]) -> str:
    return ";".join(rows) or "-"


def unlisted(text: str) -> list[str]:
    return [] if text == "-" else text.split(";")


def joined(rows: list[str]) -> list[str]:
    """Neighbouring offsets of which the same is known as one row."""
    found: list[str] = []
    for row in rows:
        first, last, what = row.split(",", 2)
        before = found[-1].split(",", 2) if found else None
        if before is not None and (int(before[1]) + 1, before[2]) == (int(first), what):
            found[-1] = f"{before[0]},{last},{what}"
        else:
            found.append(row)
    return found


def spread(rows: list[str]) -> list[tuple[int, str]]:
    """A write's batches as single offsets."""
    found = []
    for row in rows:
        first, last, what = row.split(":", 2)
        found += [(offset, what) for offset in range(int(first), int(last) + 1)]
    return sorted(found)


class KafkaFails(Exception):
    """Kafka fails: its state is no example from here on.

    It would read before the log start again and again, or an exception ends what it was about to do.
    """


class Write(NamedTuple):
    """One here; one or more of Kafka's, which writes for each lock that ends."""

    ours: WriteState
    theirs: list[int]


class World:
    """A log, members, and a share coordinator that answers late."""

    def __init__(self, kafka: Kafka, random: Random) -> None:
        self.kafka, self.random = kafka, random
        self.limits = ShareLimits(
            delivery_count_limit=random.choice([2, 2, 3, 5, 8]),
            partition_max_record_locks=random.choice([10, 30, 200]),
            record_lock_duration_ms=1000,
        )
        self.log: list[ReadBatch] = []
        self.aborted: list[tuple[int, int]] = []
        self.log_start = self.log_end = random.choice([0, 0, 7])
        self.now_ms = 0
        self.kept: tuple[StateBatch, ...] = ()
        self.kept_start = self.log_start
        self.has_moved = False
        self.pending: list[Write] = []
        self.read: tuple[str, int, list[ReadBatch], list[tuple[int, int]]] | None = None
        self.answers: list[str] = []
        self.asked = 0
        self.history: list[str] = []
        self.append()
        self.load()

    def load(self) -> None:
        self.pending, self.read, self.now_ms = [], None, 0
        self.share = SharePartition(self.limits, [])
        rows = [Change(*row[:2], RecordState(row.delivery_state), row.delivery_count) for row in self.kept]
        self.share.load(self.kept_start, 1, rows)
        texts = [f"{one[0]},{one[1]},{int(one[2])},{one[3]}" for one in rows]
        limits = self.limits
        self.compare(
            [], "reset", limits.partition_max_record_locks, limits.delivery_count_limit,
            limits.record_lock_duration_ms, self.kept_start, listed(texts),
        )  # fmt: skip

    def change_limits(self) -> None:
        """The group has other limits from now on."""
        self.share.limits = limits = ShareLimits(
            delivery_count_limit=self.random.choice([2, 3, 5, 8]),
            partition_max_record_locks=self.random.choice([100, 150, 200]),
            record_lock_duration_ms=self.random.choice([1000, 1500, 2500]),
            renew_acknowledge_enable=self.random.random() < 0.5,
        )
        self.compare(
            [], "limits", limits.partition_max_record_locks, limits.delivery_count_limit,
            limits.record_lock_duration_ms, str(limits.renew_acknowledge_enable).lower(),
        )  # fmt: skip

    # -- the log

    def append(self) -> None:
        for _ in range(self.random.randint(1, 5)):
            base, size = self.log_end, self.random.choice([1, 1, 3, 5, 10, 25])
            producer = self.random.choice([NO_PRODUCER, 1, 2])
            if producer != NO_PRODUCER and self.random.random() < 0.3:
                open_ = [one for one in self.log if one.producer_id == producer and one.is_transactional]
                marked = [one for one in self.log if one.producer_id == producer and one.is_abort]
                since = marked[-1].base_offset if marked else -1
                mine = [one.base_offset for one in open_ if one.base_offset > since]
                if mine:
                    self.aborted.append((producer, mine[0]))
                    self.log.append(ReadBatch(base, base, producer, True, True))
                    self.log_end = base + 1
                    continue
            self.log.append(ReadBatch(base, base + size - 1, producer, producer == 2, False))
            self.log_end = base + size

    def compact(self) -> None:
        kept = [one for one in self.log[:-1] if self.random.random() < 0.7]
        self.log = [*kept, self.log[-1]]

    def move_log_start(self) -> None:
        if any(one.former is not None for batch in self.share.in_flight for _, _, one in batch.parts()):
            return  # Kafka forgets that a part of a batch is pending
        if self.share.gap_start is not None:
            return  # Kafka goes on reading where the gap begins
        ends = [one.base_offset for one in self.log if one.base_offset > self.log_start]
        self.log_start = self.random.choice([*ends, self.log_end])
        self.log = [one for one in self.log if one.last_offset >= self.log_start]
        if not self.log:
            self.append()
        self.read = None
        self.has_moved = True
        self.share.log_start_moved(self.log_start)
        self.compare([], "start", self.log_start)

    # -- members

    def read_log(self) -> None:
        """A fetch reads; what it acquires is decided later."""
        offset = self.share.next_fetch_offset()
        found = [one for one in self.log if one.last_offset >= offset][: self.random.choice([1, 2, 4, 50])]
        if not found:
            self.append()
            return
        aborted = self.aborted if self.random.random() < 0.5 else []
        mine = [one for one in aborted if one[1] <= found[-1].last_offset]
        self.read = self.random.choice(MEMBERS), offset, found, mine

    def acquire(self) -> None:
        if self.read is None:
            self.read_log()
        if self.read is None:
            return
        (member, offset, batches, aborted), self.read = self.read, None
        by_records = self.random.random() < 0.4
        size, most = self.random.choice([1, 1, 3, 10, 500]), self.random.choice([1, 2, 4, 10, 500])
        got = acquire(
            self.share,
            ReadRecords(
                member_id=member, fetch_offset=offset, batches=batches, batch_size=size, max_records=most,
                is_record_limit=by_records, aborted=aborted,
            ),
            self.now_ms,
        )  # fmt: skip
        rows = [
            f"{one.base_offset},{one.last_offset},{one.producer_id},{one.is_transactional + one.is_abort}"
            for one in batches
        ]
        self.compare(
            [f"{one[0]},{one[1]},{one[2]}" for one in got],
            "acquire", member, "records" if by_records else "batches", size, most, offset, listed(rows),
            listed([f"{one[0]},{one[1]}" for one in aborted]),
        )  # fmt: skip

    def acknowledge(self) -> None:
        held = [
            (first, last, one.member_id)
            for batch in self.share.in_flight
            for first, last, one in batch.parts()
            if one.state is ACQUIRED and one.former is None
        ]
        member = self.random.choice(MEMBERS)
        if held and self.random.random() < 0.9:
            at = self.random.randrange(len(held))
            member = held[at][2]
            mine = [one for one in held[at:] if one[2] == member]
            rows = [one[:2] for one in mine[: self.random.choice([1, 1, 2, 9])]]
            rows = [self.cut(*one) for one in rows]
        elif self.has_moved:
            return  # what was before the start offset may be kept longer by one than by the other
        else:
            first = self.random.randint(self.share.start_offset, self.log_end)
            rows = [(first, first + self.random.choice([0, 1, 7]))]
        acks = [self.typed(*one) for one in rows]
        number = self.number()
        acknowledge(self.share, member, acks, self.now_ms, self.answer_of(number))
        texts = [f"{one[0]},{one[1]},{'.'.join(map(str, one.types))}" for one in acks]
        self.compare([], "ack", number, member, listed(texts))

    def cut(self, first: int, last: int) -> tuple[int, int]:
        if self.random.random() < 0.5:
            return first, last
        low = self.random.randint(first, last)
        return low, self.random.randint(low, last)

    def typed(self, first: int, last: int) -> Acknowledgement:
        kinds = self.random.choice([[1], [2], [3], [4], [0], [0, 1, 2, 3, 4], [1, 2]])
        if self.random.random() < 0.5:
            return Acknowledgement(first, last, [self.random.choice(kinds)])
        return Acknowledgement(first, last, [self.random.choice(kinds) for _ in range(first, last + 1)])

    def release(self) -> None:
        member, number = self.random.choice(MEMBERS), self.number()
        release_all(self.share, member, self.now_ms, self.answer_of(number))
        self.compare([], "release", number, member)

    def wait(self) -> None:
        self.now_ms += self.random.choice([10, 300, 1100])
        if (due_ms := self.share.deadline_ms()) is not None and due_ms <= self.now_ms:
            expire(self.share, self.now_ms)
        self.compare([], "now", self.now_ms)

    def number(self) -> int:
        self.asked += 1
        return self.asked

    def answer_of(self, number: int) -> Then:
        return lambda error: self.answers.append(f"{number}:{int(error)}")

    # -- the share coordinator

    def coordinate(self) -> None:
        if not self.pending:
            return
        write = self.pending.pop(0)
        error = self.random.choice(REFUSALS) if self.random.random() < 0.2 else ErrorCode.NONE
        if not error:
            self.kept_start = write.ours.start_offset
            rows = [StateBatch(one[0], one[1], one[3], one[2]) for one in write.ours.changes]
            self.kept = combined(self.kept, rows, self.kept_start)
        self.share.written(write.ours.write_id, error)
        for number in write.theirs[:-1]:
            self.history.append(f"answer {number} {int(error)}")
            self.kafka.ask("answer", number, int(error))
        self.compare([], "answer", write.theirs[-1], int(error))

    # -- comparing

    def compare(self, got: list[str], *words: object) -> None:
        self.history.append(" ".join(map(str, words)))
        theirs_got, answered, writes, place, in_flight = self.kafka.ask(*words)
        where = "\n".join(self.history)
        if theirs_got.endswith("inconsistent_range"):
            theirs_got = "-"  # it fails where nothing that was read may be acquired
        next_offset, start_offset = map(int, place.split(",")[:2])
        if next_offset < self.log_start or theirs_got.startswith("!"):
            raise KafkaFails
        if self.has_moved and start_offset < self.share.start_offset:
            raise KafkaFails
        if self.has_moved and in_flight != "-" and not len(self.share.in_flight):
            raise KafkaFails  # it cannot tell that all is done, as the log start is behind it
        assert theirs_got == listed(got), where
        assert answered == listed(self.answers), where
        self.answers.clear()
        effects: list[Effect] = self.share.effects
        ours = [one for one in effects if isinstance(one, WriteState)]
        effects.clear()
        self.compare_writes(ours, [one.split(",") for one in unlisted(writes)], where)
        share = self.share
        offsets = share.next_fetch_offset(), share.start_offset, share.end_offset
        can = str(share.can_acquire()).lower()
        assert place == f"{','.join(map(str, offsets))},{can},{share.complete_count}", where
        assert self.flat(self.rows()) == self.flat(unlisted(in_flight)), where

    def compare_writes(self, ours: list[WriteState], theirs: list[list[str]], where: str) -> None:
        assert bool(ours) == bool(theirs), where
        if not ours:
            return
        assert len(ours) == 1, where
        (one,) = ours
        told = [f"{row[0]}:{row[1]}:{int(row[2])}:{row[3]}" for row in one.changes]
        assert spread(told) == spread([row for write in theirs for row in write[3].split("+")]), where
        assert [str(one.start_offset), str(one.complete_count)] == theirs[-1][1:3], where
        self.pending.append(Write(one, [int(write[0]) for write in theirs]))

    def rows(self) -> list[str]:
        return [
            f"{first},{last},{one.state.name},{one.count},{one.member_id},"
            + str(one.former is not None).lower()
            for batch in self.share.in_flight
            for first, last, one in batch.parts()
        ]

    def flat(self, rows: list[str]) -> dict[int, str]:
        """What is known of each offset from the start offset on."""
        found: dict[int, str] = {}
        for row in rows:
            first, last, what = row.split(",", 2)
            for offset in range(int(first), int(last) + 1):
                if offset >= self.share.start_offset or "ACQUIRED" in what:
                    found[offset] = what
        return found


def drive(place: World) -> None:
    """Take random steps."""
    acts = [
        (place.read_log, 12), (place.acquire, 30), (place.acknowledge, 30), (place.coordinate, 30),
        (place.wait, 8), (place.release, 4), (place.append, 8), (place.compact, 4),
        (place.move_log_start, 3), (place.load, 2), (place.change_limits, 3),
    ]  # fmt: skip
    steps, weights = zip(*acts, strict=True)
    with suppress(KafkaFails):
        for _ in range(STEPS):
            place.random.choices(steps, weights)[0]()
