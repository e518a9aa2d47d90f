"""Large requests of transactions: no slice of their work grows with what they name or list."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kraftd.groups.call import Call
from kraftd.groups.effects import Respond, RespondInSlices
from kraftd.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.wire.error_code import ErrorCode
from tests.groups.transaction_desk import TransactionDesk, begun

COUNT = 10_000
MAX_LINES = 30_000  # of Python in a slice
IDS = tuple(f"id-{number}" for number in range(COUNT))


def adding(id: str, producer: tuple[int, int], *names: str) -> Callable[[], AddPartitionsToTxnRequest]:
    """All partitions of topics, which are to be in a transaction."""
    return lambda: AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=id,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(name, tuple(range(COUNT))) for name in names],
    )


class Sliced:
    """One request in slices, with the lines that each of them runs."""

    def __init__(self, desk: TransactionDesk, request: Any, version: int, allowed: bool) -> None:
        self.lines: list[int] = []
        call = Call("token", version, allows=lambda *_: allowed)
        call.in_slices = True
        coordinator = desk.coordinator
        for _ in self.counted(coordinator.handle_in_slices(call, request, lambda: desk.now_ms)):
            pass
        effects: list[Any] = coordinator.take_effects()
        (answer,) = [one for one in effects if isinstance(one, Respond | RespondInSlices)]
        assert call.is_answered
        if isinstance(answer, Respond):
            self.response: Any = answer.response
        else:
            for _ in self.counted(self._built(answer.response)):
                pass

    def _built(self, slices: Any) -> Iterator[None]:
        self.response = yield from slices

    def counted(self, slices: Iterator[None]) -> Iterator[None]:
        ended = object()
        slice: Any = None
        while slice is not ended:
            self.lines.append(0)
            sys.settrace(self._trace)
            try:
                slice = next(slices, ended)
            finally:
                sys.settrace(None)
            yield

    def _trace(self, _frame: object, event: str, _: object) -> Any:
        self.lines[-1] += event == "line"
        return self._trace


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("what", ["add", "describe", "list"])
def test_no_slice_grows_with_the_request(what: str, allowed: bool) -> None:
    desk = TransactionDesk()
    requests: dict[str, tuple[Callable[[], Any], int]] = {
        "add": (adding("id", begun(desk), "orders", "unknown"), 3),
        "describe": (lambda: DescribeTransactionsRequest(IDS), 0),
        "list": (ListTransactionsRequest, 1),
    }
    if what == "list":
        for id in IDS[:1_000]:
            desk.init(id)
    make, version = requests[what]
    sliced = Sliced(desk, make(), version, allowed)
    assert len(sliced.lines) > 3
    assert max(sliced.lines) < MAX_LINES
    if allowed:
        assert sliced.response == desk.ask(make(), version)
    elif what == "add":
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        topics = sliced.response.results_by_topic_v3_and_below
        found = [one.partition_error_code for topic in topics for one in topic.results_by_partition]
        assert found == [error] * 2 * COUNT


def test_all_partitions_that_exist_are_added_and_answered() -> None:
    desk = TransactionDesk()
    desk.topics.partitions["large"] = COUNT
    make = adding("id", begun(desk), "large")
    answer = desk.ask(make(), 3)
    (topic,) = answer.results_by_topic_v3_and_below
    assert [one.partition_index for one in topic.results_by_partition] == list(range(COUNT))
    assert not any(one.partition_error_code for one in topic.results_by_partition)
    assert len(desk.states()[-1].partitions) == COUNT + 1
