"""The settings of a transaction coordinator, with Kafka's defaults."""

from __future__ import annotations

from msgspec import Struct


class TransactionConfig(Struct, frozen=True, kw_only=True):
    """Kafka's keys (`NodeConfig.settings`). max_batch_bytes: the most that one batch may take at first."""

    transaction_state_log_num_partitions: int = 50
    transaction_state_log_load_buffer_size: int = 5 * 1024 * 1024
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 7 * 24 * 60 * 60 * 1000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_two_phase_commit_enable: bool = False
    request_timeout_ms: int = 30_000
    max_batch_bytes: int = 1024 * 1024 + 12
