"""Random requests of clients to a stock combined node and to kraftd's: every answer is the same.

Another seed, or more steps: ``KRAFTD_BROKER_SEED``, ``KRAFTD_BROKER_STEPS``.
"""

from __future__ import annotations

import os

import pytest

from tests.kafka.broker.pair import BrokerPair
from tests.kafka.broker.run import Run

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("KRAFTD_BROKER_SEED", "500"))
STEPS = int(os.environ.get("KRAFTD_BROKER_STEPS", "500"))


def test_every_answer_to_a_client_is_that_of_a_stock_node(pair: BrokerPair) -> None:
    run = Run(pair)
    run.play(SEED, STEPS)
    assert not run.differences, "\n".join(run.differences)
    assert len(run.apis) > 25 and len(run.errors) > 20, run.summary()
