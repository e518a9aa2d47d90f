"""The settings of a transaction coordinator, with Kafka's defaults."""

from __future__ import annotations

from msgspec import Struct


class TransactionConfig(Struct, frozen=True, kw_only=True):
    """Kafka's keys are beside the fields. max_batch_bytes: the most that one batch of records may take."""

    log_num_partitions: int = 50  # transaction.state.log.num.partitions
    log_load_buffer_bytes: int = 5 * 1024 * 1024  # transaction.state.log.load.buffer.size
    max_timeout_ms: int = 900_000  # transaction.max.timeout.ms
    id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000  # transactional.id.expiration.ms
    abort_interval_ms: int = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms
    expire_interval_ms: int = 3_600_000  # transaction.remove.expired.transaction.cleanup.interval.ms
    has_two_phases: bool = False  # transaction.two.phase.commit.enable
    write_timeout_ms: int = 30_000  # request.timeout.ms
    max_batch_bytes: int = 1024 * 1024 + 12
