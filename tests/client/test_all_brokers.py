"""Every broker is asked the same; those that do not answer are named."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kraftd.client.all_brokers import ask_all
from kraftd.client.failures import Refused, Unreachable
from kraftd.client.waits import Wait
from kraftd.wire.error_code import ErrorCode


class Three:
    """A cluster of brokers 1 to 3, of which some are down."""

    timeout_s = 0.0

    def __init__(self, *down: int) -> None:
        self.cache = self
        self.nodes = {1: None, 2: None, 3: None}
        self._down = down

    def wait(self) -> Wait:
        return Wait(None)

    async def refresh(self, topics: list[str]) -> None:
        assert topics == []

    async def node(self, node_id: int) -> int:
        if node_id in self._down:
            raise Unreachable(f"host{node_id}:9092: no answer in time")
        return node_id


async def named(connection: Any) -> tuple[int, str]:
    return 0, f"groups of {connection}"


def asked(cluster: Three, attempt: Any = named) -> tuple[dict[int, str], dict[str, str]]:
    return asyncio.run(ask_all(cluster, attempt))  # type: ignore[arg-type]


def test_brokers_that_do_not_answer_are_named_beside_the_others_answers() -> None:
    assert asked(Three(2)) == (
        {1: "groups of 1", 3: "groups of 3"},
        {"broker 2": "host2:9092: no answer in time"},
    )


def test_no_answer_at_all_and_a_refusal_are_failures() -> None:
    with pytest.raises(Unreachable, match="host1:9092"):
        asked(Three(1, 2, 3))

    async def refused(connection: Any) -> tuple[int, str]:
        return int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), ""

    with pytest.raises(Refused, match="CLUSTER_AUTHORIZATION_FAILED"):
        asked(Three(2), refused)
