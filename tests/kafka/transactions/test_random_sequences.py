"""Random sequences of transactional requests to a stock node and kraftd's: every answer is the same.

Another seed, or more steps: ``KRAFTD_TRANSACTIONS_SEED``, ``KRAFTD_TRANSACTIONS_STEPS``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from random import Random

import pytest

from kraftd.messages.describe_producers_request import DescribeProducersRequest
from kraftd.messages.describe_transactions_request import DescribeTransactionsRequest
from kraftd.messages.fetch_request import FetchRequest
from kraftd.messages.list_offsets_request import ListOffsetsRequest
from kraftd.messages.list_transactions_request import ListTransactionsRequest
from kraftd.messages.offset_fetch_request import OffsetFetchRequest
from kraftd.wire.codec import encode_bytes
from kraftd.wire.errors import EncodeError
from testkit.node import CombinedNode, Kind
from tests.kafka.differential.difference import difference
from tests.kafka.transactions.pair import TransactionPair, error_codes
from tests.kafka.transactions.requests import TransactionRequests

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KRAFTD_TRANSACTIONS_SEED", "1"))
STEPS = int(os.environ.get("KRAFTD_TRANSACTIONS_STEPS", "100"))  # at each level
READS = (
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    FetchRequest,
    ListOffsetsRequest,
    ListTransactionsRequest,
    OffsetFetchRequest,
)
STEPS_A_RUN = 50  # then other ids begin


@pytest.fixture(scope="module")
def pair(whole_kafkas: dict[Kind, CombinedNode]) -> Iterator[TransactionPair]:
    pair = TransactionPair(whole_kafkas)
    pair.begin()
    yield pair
    pair.close()


def play(pair: TransactionPair, seed: int, version: int, steps: int) -> tuple[set[int], list[str]]:
    """The error codes that were met, and the differences that were found, at most one a run."""
    errors: set[int] = set()
    found: list[str] = []
    for start in range(0, steps, STEPS_A_RUN):
        pair.prefix = f"v{version}-{seed}-{start}-"
        requests = TransactionRequests(Random(f"{seed}/{version}/{start}"), pair.prefix, version)
        pair.create_topic(requests.topic)
        story = []
        for step in range(STEPS_A_RUN):
            request, api_version = requests.draw()
            try:
                encode_bytes(request, api_version)
            except EncodeError:
                continue
            story.append(f"v{api_version} {request!r}")
            theirs, ours = pair.ask(request, api_version)
            if isinstance(request, READS):  # of what may be committed a moment after its answer
                until_s = time.monotonic() + 3
                while theirs != ours and time.monotonic() < until_s:
                    theirs, ours = pair.ask(request, api_version)
            if theirs != ours:
                last = "\n".join(story[-12:])
                found.append(
                    f"seed {seed}/{version}/{start}, step {step}:\n{last}\n{difference(theirs, ours)}"
                )
                break  # the two may have parted
            errors |= error_codes(theirs)
            requests.answered(request, theirs)
            try:
                pair.settle()
            except AssertionError as error:
                found.append(f"seed {seed}/{version}/{start}, step {step}: {error}\n" + "\n".join(story))
                break
    return errors, found


@pytest.mark.parametrize("version", [2, 1, 0])
def test_every_answer_is_that_of_a_stock_node__kip890(pair: TransactionPair, version: int) -> None:
    pair.set_version(version)
    errors, found = play(pair, SEED, version, STEPS)
    assert not found, "\n\n".join(found)
    assert len(errors) > 4, errors
