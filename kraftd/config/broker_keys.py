"""Keys of Kafka that only the broker role reads; their types and defaults are Kafka's.

A node without that role says that they have no effect. What a broker's keys mean for topics, such as
`log.retention.hours`, is read on every node.
"""

from __future__ import annotations

BROKER_ROLE = "broker"

OF_BROKERS = frozenset(
    (
        "add.partitions.to.txn.retry.backoff.max.ms",
        "add.partitions.to.txn.retry.backoff.ms",
        "auto.create.topics.enable",
        "group.consumer.assignors",
        "group.consumer.max.size",
        "group.consumer.regex.refresh.interval.ms",
        "group.initial.rebalance.delay.ms",
        "group.max.session.timeout.ms",
        "group.max.size",
        "group.min.session.timeout.ms",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.enable",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.threads",
        "log.flush.offset.checkpoint.interval.ms",
        "log.flush.scheduler.interval.ms",
        "log.retention.check.interval.ms",
        "num.replica.fetchers",
        "offset.metadata.max.bytes",
        "offsets.commit.timeout.ms",
        "offsets.load.buffer.size",
        "offsets.retention.check.interval.ms",
        "offsets.retention.minutes",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "offsets.topic.segment.bytes",
        "producer.id.expiration.check.interval.ms",
        "producer.id.expiration.ms",
        "quota.window.num",
        "quota.window.size.seconds",
        "replica.fetch.backoff.ms",
        "replica.fetch.max.bytes",
        "replica.fetch.min.bytes",
        "replica.fetch.wait.max.ms",
        "replica.lag.time.max.ms",
        "replica.selector.class",
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.load.buffer.size",
        "share.coordinator.snapshot.update.records.per.snapshot",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.prune.interval.ms",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.segment.bytes",
        "share.coordinator.write.timeout.ms",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "transaction.max.timeout.ms",
        "transaction.partition.verification.enable",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transaction.state.log.load.buffer.size",
        "transaction.state.log.min.isr",
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        "transaction.state.log.segment.bytes",
        "transaction.two.phase.commit.enable",
        "transactional.id.expiration.ms",
    )
)
