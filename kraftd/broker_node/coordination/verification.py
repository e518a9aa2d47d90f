"""Records of a transaction, verified: a partition takes them once the coordinator knows it (KIP-890).

The coordinator is asked, or with transactions v2 told, before the first batch of a transaction in a
partition.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from kraftd.groups.deadlines import Deadlines
from kraftd.groups.transactions.partitions import Added, Results
from kraftd.groups.transactions.transaction import EPOCH_BUMPS, TopicPartition
from kraftd.histogram import Histogram
from kraftd.named_tuple import NamedTuple
from kraftd.partition.producers import NO_GUARD
from kraftd.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from kraftd.broker_node.coordination.late_coordinators import LateCoordinators
    from kraftd.broker_node.partitions.replicas import Replicas
    from kraftd.configdef.node import NodeConfig

NS_PER_MS = 1_000_000

Guards = dict[TopicPartition, int]
Then = Callable[[Results, Guards], None]


class Support(NamedTuple):
    """What the version of a request allows: to add partitions, and to answer TRANSACTION_ABORTABLE."""

    adds: bool
    knows_abortable: bool


class Batch(NamedTuple):
    """What a verification needs of a batch, or of offsets to commit."""

    producer_id: int
    producer_epoch: int
    base_sequence: int = -1


class VerifyingNode(Protocol):
    """What verifications use of their node."""

    now_ms: int

    @property
    def wall_ms(self) -> int: ...
    @property
    def replicas(self) -> Replicas: ...
    @property
    def coordinators(self) -> LateCoordinators: ...


class Verifications:
    """The verifications that are under way; those that are to be repeated wait for their time."""

    def __init__(self, node: VerifyingNode, static: NodeConfig) -> None:
        self._node = node
        self._backoff_ms = static.integer("add.partitions.to.txn.retry.backoff.ms")
        self._limit_ms = min(
            static.integer("add.partitions.to.txn.retry.backoff.max.ms"), static.integer("request.timeout.ms")
        )
        self._later = Deadlines()
        self._last_number = 0
        self.times = Histogram()  # of the coordinator's answers, in nanoseconds
        self.failures = 0  # partitions that it refused

    def __repr__(self) -> str:
        return f"<Verifications, {len(self._later)} to be repeated>"

    def deadline_ms(self) -> int | None:
        """When `run_due` has work; None for never."""
        return self._later.next_ms()

    def run_due(self, now_ms: int) -> None:
        """Ask again."""
        while (action := self._later.take(now_ms)) is not None:
            action()

    def verify(
        self,
        transactional_id: str,
        batches: dict[TopicPartition, Batch],
        support: Support,
        then: Then,
        *,
        is_repeated: bool = False,
    ) -> None:
        """Have the partitions of one producer's batches verified; `then` gets errors and guards.

        is_repeated: while the producer's former transaction ends, ask again for some time.
        """
        if not batches or not (support.adds or self._is_enabled(next(iter(batches))[0])):
            then({}, {})
            return
        until_ms = self._node.now_ms + self._limit_ms if is_repeated else 0
        self._verify_until(transactional_id, batches, support, then, until_ms)

    def _verify_until(
        self,
        transactional_id: str,
        batches: dict[TopicPartition, Batch],
        support: Support,
        then: Then,
        until_ms: int,
    ) -> None:
        # Two functions that know each other would keep the request until a collection of garbage.
        def finish(errors: Results, guards: Guards) -> None:
            now_ms = self._node.now_ms
            if ErrorCode.CONCURRENT_TRANSACTIONS in errors.values() and now_ms < until_ms:
                self._last_number += 1
                again = partial(self._verify_until, transactional_id, batches, support, then, until_ms)
                self._later.schedule(self._last_number, now_ms + self._backoff_ms, again)
            else:
                then(errors, guards)

        self._attempt(transactional_id, batches, support, finish)

    def _is_enabled(self, topic: str) -> bool:
        """Return whether transaction.partition.verification.enable is true, as for any topic."""
        return self._node.replicas.configs.of(topic).partition.verifies_transactions

    def _attempt(
        self, transactional_id: str, batches: dict[TopicPartition, Batch], support: Support, then: Then
    ) -> None:
        node = self._node
        errors: Results = {}
        guards: Guards = {}
        for place, batch in batches.items():
            hosted = node.replicas.get(*place)
            if hosted is None or hosted.partition is None:
                errors[place] = ErrorCode.NOT_LEADER_OR_FOLLOWER
                continue
            guard = hosted.partition.start_verification(batch, node.wall_ms, supports_epoch_bump=support.adds)
            if isinstance(guard, ErrorCode):
                errors[place] = guard
            elif guard != NO_GUARD:
                guards[place] = guard
        if not guards:
            then(errors, guards)
            return

        asked_ms = node.now_ms

        def answered(results: Results) -> None:
            self.times.note((node.now_ms - asked_ms) * NS_PER_MS)
            for place, error in results.items():
                if error:
                    self.failures += 1
                    errors[place] = _as_producers_know_it(error, support)
            then(errors, guards)

        first = next(iter(batches.values()))
        producer = first.producer_id, first.producer_epoch
        added = Added(transactional_id, *producer, frozenset(guards), EPOCH_BUMPS)
        node.coordinators.transactions.ask_coordinator(added, not support.adds, answered)


def _as_producers_know_it(error: ErrorCode, support: Support) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error is ErrorCode.TRANSACTION_ABORTABLE and not support.knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return error
