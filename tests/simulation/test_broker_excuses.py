"""What brokers cannot end excuses the liveness of a world, and nothing else does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kraftd.groups.transactions.states import ONGOING, PREPARE_ABORT
from kraftd.groups.transactions.transaction import Transaction
from kraftd.metadata.state import PartitionState
from kraftd.partition.producer_entry import ProducerEntry
from kraftd.simulation.checkers.brokers.replicas import is_to_end
from kraftd.simulation.checkers.brokers.transactions import is_overtaken


@pytest.mark.parametrize(
    ("client_version", "epoch", "transaction_start", "excused"),
    [
        (0, 6, -1, True),
        (0, 6, 40, True),
        (0, 5, 40, False),
        (0, 5, -1, False),
        (2, 6, -1, True),
        (2, 5, 40, True),  # the marker has the epoch of the transaction after it
        (2, 5, -1, False),  # it has its marker already
        (2, 4, 40, False),
    ],
)
def test_a_transaction_whose_markers_are_refused_is_excused(
    client_version: int, epoch: int, transaction_start: int, excused: bool
) -> None:
    decided = Transaction(1, producer_epoch=5, state=PREPARE_ABORT, client_version=client_version)
    known = ProducerEntry(1, epoch, transaction_start=transaction_start)
    assert is_overtaken(decided, known) is excused
    assert not is_overtaken(replace(decided, state=ONGOING), known)
    assert not is_overtaken(decided, None)


@pytest.mark.parametrize(
    ("adding", "removing", "can_end"),
    [((), (), False), ((2,), (), True), ((), (2,), True), ((2,), (3,), True), ((2,), (2, 3), False)],
)
def test_a_reassignment_that_adds_what_it_removes_is_excused(
    adding: tuple[int, ...], removing: tuple[int, ...], can_end: bool
) -> None:
    state = PartitionState(
        (1, 3, 2), (bytes(16),) * 3, (1, 3, 2), adding_replicas=adding, removing_replicas=removing
    )
    assert is_to_end(state) is can_end
