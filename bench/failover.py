"""Three controllers with Kafka's default timeouts: the time without a leader after the loss of one.

Gone in three ways: killed, so that its connections are reset; frozen, like a lost host, from which no other
node gets a message any more; and told to stop. The end is the first answer of a survivor to DescribeQuorum
as the leader of a later epoch whose records are committed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.figures import Figures
from bench.measure import Plan
from bench.quorum import VOTERS, quorum
from kraftd.wire.error_code import ErrorCode
from testkit.client import Client
from testkit.node import Controller, Kind
from testkit.process import HOST
from testkit.quorum import DESCRIBE, Quorum

# Between two questions to each survivor: fine enough for what is measured, few enough to disturb no node.
_POLL_S = 0.002
_GIVE_UP_S = 60
_REST_S = 1.0
_SIGTERM = 15


@dataclass(frozen=True)
class Runs:
    """How often each way of losing a leader is tried."""

    killed: int = 10
    frozen: int = 4
    stopped: int = 4


FULL, QUICK = Runs(), Runs(killed=3, frozen=2, stopped=2)


def failover_ms(three: Quorum, lose: Callable[[Controller], None]) -> float:
    """Milliseconds from the loss of the leader to a leader of a later epoch. RuntimeError if none comes."""
    three.wait_for_voters(*VOTERS)
    time.sleep(_REST_S)
    described = three.described()
    if described is None:
        raise RuntimeError("nobody leads")
    gone, epoch = three.controllers[described.leader_id], described.leader_epoch
    survivors = [
        Client(HOST, one.port, client_id="bench", timeout_s=_GIVE_UP_S)
        for one in three.controllers.values()
        if one is not gone
    ]
    for client in survivors:
        client.call(DESCRIBE, 2)
    began = time.perf_counter()
    lose(gone)
    try:
        while not any(_leads(client, epoch) for client in survivors):
            if time.perf_counter() - began > _GIVE_UP_S:
                raise RuntimeError(f"no leader after epoch {epoch} within {_GIVE_UP_S} s")
            time.sleep(_POLL_S)
        took_ms = (time.perf_counter() - began) * 1000
    finally:
        for client in survivors:
            client.close()
    _bring_back(three, gone)
    return took_ms


def _leads(client: Client, epoch: int) -> bool:
    partition = client.call(DESCRIBE, 2).topics[0].partitions[0]
    return (
        partition.error_code == ErrorCode.NONE
        and partition.leader_epoch > epoch
        and partition.high_watermark > 0
    )


def _bring_back(three: Quorum, gone: Controller) -> None:
    if gone.frozen:
        gone.thaw()
    else:
        gone.stop()
        three.start_controllers(gone.node_id)


def _kill(controller: Controller) -> None:
    controller.signal(9)


def _freeze(controller: Controller) -> None:
    controller.freeze()


def _stop(controller: Controller) -> None:
    controller.signal(_SIGTERM)


def failovers(kind: Kind, plan: Plan) -> Figures:
    """The middle and the worst of some runs of each kind."""
    runs = FULL if plan == Plan() else QUICK
    ways = {
        "killed": (runs.killed, _kill),
        "frozen": (runs.frozen, _freeze),
        "stopped": (runs.stopped, _stop),
    }
    figures: Figures = {}
    with quorum(kind) as three:
        for name, (count, lose) in ways.items():
            taken = [failover_ms(three, lose) for _ in range(count)]
            figures[f"failover_{name}_p50_ms"] = statistics.median(taken)
            figures[f"failover_{name}_max_ms"] = max(taken)
    return figures
