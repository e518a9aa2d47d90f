"""Random valid histories, undone, aborted, or written as a snapshot and read again: the images are equal."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraftd.messages.abort_transaction_record import AbortTransactionRecord
from kraftd.messages.begin_transaction_record import BeginTransactionRecord
from kraftd.messages.registry import METADATA_RECORDS
from kraftd.metadata.errors import ReplayError
from kraftd.metadata.image import STATE, Image
from kraftd.metadata.partition_index import PartitionSet
from kraftd.metadata.replay import REPLAY
from kraftd.wire.message import Message
from kraftd.wire.record_frame import decode_record, encode_record
from tests.metadata.checks import check, same
from tests.metadata.histories import LATEST, history, next_record, replayed

seeds = st.integers(0, 2**32)
# Public fields of an image that are no part of its state: offsets, indexes, counts.
BESIDE_STATE = {
    "acl_changes",
    "broker_offsets",
    "elections_from_elr",
    "epoch",
    "equal_partitions",
    "idle_count",
    "known_changes",
    "known_partitions",
    "offset",
    "partition_count",
    "registration_offsets",
    "replica_changes",
    "shared_values",
    "transaction_offset",
    "unclean_elections",
    "undo_count",
}


def play(seed: int, steps: int) -> None:
    """Apply records as a leader, commit some and undo some; compare with a plain replay."""
    random = Random(seed)
    image = Image()
    log: list[Message] = []
    committed = -1
    marked = False
    for step in range(steps):
        what = random.random()
        if what < 0.80 or step < len(LATEST):
            record = LATEST[len(log)] if len(log) < len(LATEST) else next_record(image, random)
            log.append(record)
            if random.random() < 0.5:
                image.apply(record, len(log) - 1, 1)
            else:
                image.apply_all([record], len(log) - 1, 1)
            if not marked:
                committed = len(log) - 1
        elif what < 0.85 and not marked:
            image.mark()
            marked = True
        elif what < 0.93 and marked:
            committed = random.randint(committed, len(log) - 1)
            image.commit(committed)
        elif marked:
            del log[committed + 1 :]
            image.undo_to(committed)
            marked = False
            same(image, replayed(log))
        check(image)
    same(image, replayed(log))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seeds)
def test_undone_records_leave_no_trace(seed: int) -> None:
    play(seed, 120)


@settings(max_examples=60, deadline=None)
@given(seeds)
def test_a_replayed_snapshot_equals_the_image(seed: int) -> None:
    image = replayed(history(seed, 150))
    written = [encode_record(record) for record in image.records()]
    again = replayed([decode_record(value).message for value in written])
    assert again == image
    check(again)
    assert [encode_record(record) for record in again.records()] == written


@settings(max_examples=40, deadline=None)
@given(seeds, seeds)
def test_an_aborted_transaction_leaves_nothing_behind__kip868(before: int, inside: int) -> None:
    records = history(before, 60)
    image = replayed(records)
    aborted(image, Random(f"in {inside}"), 60)
    plain = replayed(records)
    assert image == plain
    assert image.registration_offsets == plain.registration_offsets
    assert image.uncommitted_change_count == 0
    check(image)


def aborted(image: Image, random: Random, count: int) -> None:
    """Apply a transaction of this many records, then its abort."""
    image.apply(BeginTransactionRecord("t"), image.offset + 1, 1)
    while count:
        record = next_record(image, random)
        if "Transaction" not in type(record).__name__:
            image.apply(record, image.offset + 1, 1)
            count -= 1
    image.apply(AbortTransactionRecord(), image.offset + 1, 1)


def test_a_follower_keeps_no_journal_outside_of_transactions() -> None:
    image = replayed(history(7, 200))
    assert image.uncommitted_change_count == 0


# Faults planted in the image and in the replay: the checks above must detect each of them.


def no_index_of_led(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "_count_led", lambda self, leader, change: None)


def index_that_forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionSet, "discard", lambda self, topic_id, index: None)


def journal_dropped_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Image.commit
    monkeypatch.setattr(Image, "commit", lambda self, offset: honest(self, offset + 1))


def undo_stops_one_short(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Image.undo_to
    monkeypatch.setattr(Image, "undo_to", lambda self, offset: honest(self, offset + 1))


def transaction_end_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "_note_transaction_end", lambda self: None)


def abort_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "abort_transaction", Image.end_transaction)


def set_without_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    def put(self: Image, table: dict[object, object], key: object, value: object) -> None:
        journal, self._journal = self._journal, None
        honest(self, table, key, value)
        self._journal = journal

    honest = Image.put
    monkeypatch.setattr(Image, "put", put)


MUTANTS = [
    no_index_of_led,
    index_that_forgets_nothing,
    journal_dropped_too_early,
    undo_stops_one_short,
    transaction_end_forgotten,
    abort_takes_nothing_back,
    set_without_journal,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_planted_fault_is_detected(mutant: object, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [replayed(history(seed, 60)) for seed in range(20)]
    mutant(monkeypatch)  # type: ignore[operator]
    with pytest.raises((AssertionError, KeyError, ReplayError)):
        for seed in range(200):
            if seed < len(plain):
                image = replayed(history(seed, 60))
                aborted(image, Random(f"in {seed}"), 20)
                assert image == plain[seed]
            play(seed, 120)


def test_replay_handles_every_metadata_record() -> None:
    assert {message.__name__ for message in REPLAY} == {name for _, name, *_ in METADATA_RECORDS.values()}


def test_images_are_compared_by_all_of_their_state() -> None:
    public = {name for name in vars(Image()) if not name.startswith("_")}
    assert public - set(STATE) == BESIDE_STATE
