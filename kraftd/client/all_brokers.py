"""Asks every broker of a cluster the same, and goes on without those that do not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kraftd.client.cluster import Cluster
from kraftd.client.connection import Connection
from kraftd.client.coordinator import repeated
from kraftd.client.failures import Unreachable

T = TypeVar("T")


async def ask_all(
    cluster: Cluster, attempt: Callable[[Connection], Awaitable[tuple[int, T]]]
) -> tuple[dict[int, T], dict[str, str]]:
    """The answers by id, and why others, as `broker 1`, have none. `attempt` returns a code and an answer.

    Raises Unreachable if no broker answers, Refused if one refuses.
    """
    await cluster.refresh([])

    async def of_broker(node_id: int) -> T | Unreachable:
        def connect() -> Awaitable[Connection]:
            return cluster.node(node_id)

        try:
            return await repeated(cluster, f"broker {node_id}", connect, attempt)
        except Unreachable as failure:
            return failure

    node_ids = list(cluster.cache.nodes)
    found = dict(zip(node_ids, await asyncio.gather(*map(of_broker, node_ids)), strict=True))
    answers = {node_id: one for node_id, one in found.items() if not isinstance(one, Unreachable)}
    failures = {node_id: one for node_id, one in found.items() if isinstance(one, Unreachable)}
    if failures and not answers:
        raise next(iter(failures.values()))
    return answers, {f"broker {node_id}": str(one) for node_id, one in failures.items()}
