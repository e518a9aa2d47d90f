"""Connections over the rate wait in their order, and those over their address's quota are closed late."""

from __future__ import annotations

import asyncio

from kraftd.net.connection_rates import ConnectionRates
from kraftd.runtime.connections import admission
from kraftd.runtime.connections.admission import Accepted, Admission


class Waits(ConnectionRates):
    """Every connection of a stranger waits 30 ms; those of "over" are to be closed after 30 ms."""

    def accept(self, listener: str, now_ms: int, *, known: bool = False) -> int:
        return 0 if known else 30

    def accept_from(self, host: str, listener: str, now_ms: int, *, known: bool = False) -> int:
        return 30 if host == "over" else 0


async def test_strangers_wait_in_their_order_and_nodes_of_the_quorum_pass_them() -> None:
    made = Admission(asyncio.get_running_loop(), lambda: 0, Waits(), lambda host: host == "peer")
    seen: list[str] = []
    for host in ("a", "over", "b", "peer"):
        made.accept(
            "L",
            Accepted(host, lambda host=host: seen.append(host), lambda host=host: seen.append(f"-{host}")),
        )
    assert seen == ["peer"]
    await asyncio.sleep(0.045)
    assert seen == ["peer", "a"]
    await asyncio.sleep(0.2)
    assert sorted(seen) == ["-over", "a", "b", "peer"]


async def test_only_so_many_wait_and_all_are_closed_at_the_end() -> None:
    made = Admission(asyncio.get_running_loop(), lambda: 0, Waits())
    closed: list[str] = []
    for _ in range(admission.MAX_HELD + 1):
        made.accept("L", Accepted("a", lambda: None, lambda: closed.append("a")))
    assert len(closed) == 1
    made.stop()
    assert len(closed) == admission.MAX_HELD + 1
