"""The settings of the transaction coordinator, from a broker's configuration."""

from __future__ import annotations

from kraftd.configdef.node import NodeConfig
from kraftd.groups.transactions.config import TransactionConfig


def transaction_config(static: NodeConfig) -> TransactionConfig:
    """Kafka's keys of transactions."""
    integer = static.integer
    return TransactionConfig(
        log_num_partitions=integer("transaction.state.log.num.partitions"),
        log_load_buffer_bytes=integer("transaction.state.log.load.buffer.size"),
        max_timeout_ms=integer("transaction.max.timeout.ms"),
        id_expiration_ms=integer("transactional.id.expiration.ms"),
        abort_interval_ms=integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        expire_interval_ms=integer("transaction.remove.expired.transaction.cleanup.interval.ms"),
        has_two_phases=bool(static.value("transaction.two.phase.commit.enable")),
        write_timeout_ms=integer("request.timeout.ms"),
    )
