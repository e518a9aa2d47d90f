"""Three controllers with Kafka's default timeouts: the time without a leader after the loss of one.

A leader is lost in three ways: killed, so that its connections are reset; frozen, like a lost host, which
sends nothing more; and stopped by a signal. The time ends when a survivor first describes itself as the
leader of a later epoch with committed records.
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

# Between two requests to each survivor: short enough to measure, long enough to disturb no node.
_POLL_S = 0.002
_GIVE_UP_S = 60
_REST_S = 1.0
_SIGTERM = 15


@dataclass(frozen=True)
class Runs:
    """The number of runs for each way to lose a leader."""

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
        raise RuntimeError("no controller leads")
    lost, epoch = three.controllers[described.leader_id], described.leader_epoch
    survivors = [
        Client(HOST, one.port, client_id="bench", timeout_s=_GIVE_UP_S)
        for one in three.controllers.values()
        if one is not lost
    ]
    for client in survivors:
        client.call(DESCRIBE, 2)
    began = time.perf_counter()
    lose(lost)
    try:
        while not any(_leads(client, epoch) for client in survivors):
            if time.perf_counter() - began > _GIVE_UP_S:
                raise RuntimeError(f"no leader after epoch {epoch} within {_GIVE_UP_S} s")
            time.sleep(_POLL_S)
        took_ms = (time.perf_counter() - began) * 1000
    finally:
        for client in survivors:
            client.close()
    _bring_back(three, lost)
    return took_ms


def _leads(client: Client, epoch: int) -> bool:
    partition = client.call(DESCRIBE, 2).topics[0].partitions[0]
    return bool(
        partition.error_code == ErrorCode.NONE
        and partition.leader_epoch > epoch
        and partition.high_watermark > 0
    )


def _bring_back(three: Quorum, lost: Controller) -> None:
    if lost.frozen:
        lost.thaw()
    else:
        lost.stop()
        three.start_controllers(lost.node_id)


def _kill(controller: Controller) -> None:
    controller.signal(9)


def _freeze(controller: Controller) -> None:
    controller.freeze()


def _stop(controller: Controller) -> None:
    controller.signal(_SIGTERM)


def failovers(kind: Kind, plan: Plan) -> Figures:
    """The median and the worst of several runs of each kind."""
    runs = FULL if plan == Plan() else QUICK
    ways = {
        "killed": (runs.killed, _kill),
        "frozen": (runs.frozen, _freeze),
        "stopped": (runs.stopped, _stop),
    }
    figures: Figures = {}
    with quorum(kind) as three:
        for name, (count, lose) in ways.items():
            times_ms = [failover_ms(three, lose) for _ in range(count)]
            figures[f"failover_{name}_p50_ms"] = statistics.median(times_ms)
            figures[f"failover_{name}_max_ms"] = max(times_ms)
    return figures
