"""The figures: the format of each, which direction is better, and the intended ratio."""

from __future__ import annotations

from dataclasses import dataclass

Figures = dict[str, float]


@dataclass(frozen=True)
class Figure:
    """One row of the table and one bar of a plot. Plots leave out the text before a colon."""

    name: str
    unit: str
    digits: int
    aim: str
    more_is_better: bool = False
    compared: bool = True  # false: it explains other figures, and is in the table only

    def times_better(self, kraftd: float, kafka: float) -> float | None:
        """How many times better kraftd is, above 1, or worse, below; None if there is no count."""
        better, worse = (kraftd, kafka) if self.more_is_better else (kafka, kraftd)
        return better / worse if better and worse else None

    def written(self, value: float) -> str:
        return f"{value:,.{self.digits}f} {self.unit}".strip()


FIGURES = {
    "start_wall_ms": Figure("cold start to first ApiVersions, wall", "ms", 0, "6x"),
    "start_cpu_ms": Figure("cold start to first ApiVersions, CPU", "ms", 0, "10x"),
    "idle_rss_mib": Figure("idle, resident memory", "MiB", 0, "3x"),
    "idle_cpu_percent": Figure("idle, CPU", "% of a core", 2, "2x"),
    "create_p50_ms": Figure("CreateTopics of one topic, p50", "ms", 2, "8x"),
    "create_p99_ms": Figure("CreateTopics of one topic, p99", "ms", 2, "4x"),
    "create_no_linger_p50_ms": Figure("the same, append linger 0, p50", "ms", 2, "2x"),
    "create_no_linger_p99_ms": Figure("the same, append linger 0, p99", "ms", 2, ""),
    "create_1000_topics_ms": Figure("one request of 1,000 topics", "ms", 0, "3x"),
    "heartbeats_per_cpu_s": Figure("BrokerHeartbeats per CPU second", "", 0, "2x", True),
    "heartbeats_per_s": Figure("BrokerHeartbeats per second", "", 0, "", True),
    "empty_fetches_per_cpu_s": Figure("empty fetches per CPU second", "", 0, "2x", True),
    "empty_fetches_per_s": Figure("empty fetches per second", "", 0, "", True),
    "admin_ops_per_s": Figure("mixed administration: operations per second", "", 0, "4x", True),
    "admin_p50_ms": Figure("mixed administration: p50", "ms", 2, ""),
    "admin_p99_ms": Figure("mixed administration: p99", "ms", 2, "4x"),
    "admin_burst_p50_ms": Figure("mixed administration: AlterPartition of 1,000, p50", "ms", 1, ""),
    "admin_tls_ops_per_s": Figure("by mTLS and ACLs: operations per second", "", 0, "4x", True),
    "admin_tls_p50_ms": Figure("by mTLS and ACLs: p50", "ms", 2, ""),
    "admin_tls_p99_ms": Figure("by mTLS and ACLs: p99", "ms", 2, "4x"),
    "admin_tls_burst_p50_ms": Figure("by mTLS and ACLs: AlterPartition of 1,000, p50", "ms", 1, ""),
    "alter_partition_count": Figure("AlterPartition: the most partitions granted", "", 0, "", compared=False),
    "alter_partition_10000_ms": Figure("AlterPartition of 10,000 partitions", "ms", 0, "3x"),
    "alter_partition_10000_cpu_ms": Figure("the same, CPU of the controller", "ms", 0, ""),
    "tls_handshakes_per_cpu_s": Figure("TLS handshakes per CPU second", "", 0, "1x", True),
    "acls_decision_us": Figure("100,000 ACLs: a decision", "us", 1, "20 us at most"),
    "acls_any_us": Figure("100,000 ACLs: a question about any topic", "us", 1, "20 us at most"),
    "acls_load_cpu_ms": Figure("100,000 ACLs: loaded, CPU", "ms", 0, "3x"),
    "three_propagation_p50_ms": Figure("3 controllers: create sent to seen on a broker, p50", "ms", 1, "6x"),
    "three_propagation_v17_p50_ms": Figure(
        "3 controllers: the same on a broker of 4.0 (Fetch v17), p50", "ms", 1, "6x"
    ),
    "three_observers_last_ms": Figure(
        "3 controllers: create sent to known by the last of 1,000 observers, p50", "ms", 1, ""
    ),
    "three_create_p50_ms": Figure("3 controllers: CreateTopics, p50", "ms", 2, "6x"),
    "three_create_p99_ms": Figure("3 controllers: CreateTopics, p99", "ms", 2, "4x"),
    "three_create_no_linger_p50_ms": Figure("3 controllers: the same, append linger 0, p50", "ms", 2, "2x"),
    "three_create_1000_topics_ms": Figure("3 controllers: one request of 1,000 topics", "ms", 0, "3x"),
    "three_creates_per_s": Figure("3 controllers: creates per second, 50 clients", "", 0, "5x", True),
    "three_idle_cpu_percent": Figure("3 controllers: idle, CPU of all", "% of a core", 2, "2x"),
    "failover_killed_p50_ms": Figure("leader killed, to the next leader, p50", "ms", 0, "10x"),
    "failover_killed_max_ms": Figure("leader killed, the worst", "ms", 0, ""),
    "failover_frozen_p50_ms": Figure("leader's host lost, to the next leader, p50", "ms", 0, ""),
    "failover_frozen_max_ms": Figure("leader's host lost, the worst", "ms", 0, ""),
    "failover_stopped_p50_ms": Figure("leader stopped, to the next leader, p50", "ms", 0, ""),
    "failover_stopped_max_ms": Figure("leader stopped, the worst", "ms", 0, ""),
    "scale_partitions_per_s": Figure("scale: partitions created per second", "", 0, "1x", True),
    "scale_create_cpu_us": Figure("scale: CPU of a partition created", "us", 1, ""),
    "scale_create_p50_at_0_ms": Figure("scale: CreateTopics, p50, no partition", "ms", 2, ""),
    "scale_create_p50_at_tenth_ms": Figure("scale: the same, a tenth of all partitions", "ms", 2, ""),
    "scale_create_p50_at_all_ms": Figure("scale: the same, all partitions", "ms", 2, ""),
    "scale_rss_mib": Figure("scale: resident memory after the creates", "MiB", 0, "3x"),
    "scale_log_answers_s": Figure("scale: restart from the log, ApiVersions answered", "s", 2, ""),
    "scale_log_slowest_answer_ms": Figure(
        "scale: the slowest ApiVersions while it loads", "ms", 0, "", compared=False
    ),
    "scale_log_serves_s": Figure("scale: restart from the log until it serves, wall", "s", 2, "4x"),
    "scale_log_serves_cpu_s": Figure("scale: the same, CPU", "s", 2, "5x"),
    "scale_log_rss_mib": Figure("scale: the same, resident memory", "MiB", 0, "3x"),
    "scale_checkpoint_s": Figure("scale: a checkpoint written, wall", "s", 2, ""),
    "scale_checkpoint_cpu_s": Figure("scale: the same, CPU of all processes", "s", 2, "0.5x"),
    "scale_checkpoint_mib": Figure("scale: the checkpoint", "MiB", 1, "", compared=False),
    "scale_checkpoint_peak_rss_mib": Figure(
        "scale: the most memory of the controller until then", "MiB", 0, "", compared=False
    ),
    "scale_checkpoint_answers_s": Figure("scale: restart from it, ApiVersions answered", "s", 2, ""),
    "scale_checkpoint_slowest_answer_ms": Figure(
        "scale: the slowest ApiVersions while it loads", "ms", 0, "", compared=False
    ),
    "scale_checkpoint_serves_s": Figure("scale: restart from it until it serves, wall", "s", 2, "4x"),
    "scale_checkpoint_serves_cpu_s": Figure("scale: the same, CPU", "s", 2, "5x"),
    "scale_checkpoint_rss_mib": Figure("scale: the same, resident memory", "MiB", 0, "3x"),
    "scale_fence_ms": Figure("scale: a silent broker fenced, to the last record committed", "ms", 0, "2x"),
    "scale_fence_records": Figure("scale: partitions changed", "", 0, "", compared=False),
    "scale_fence_heartbeat_p50_ms": Figure("scale: heartbeats meanwhile, p50", "ms", 2, ""),
    "scale_fence_heartbeat_p99_ms": Figure("scale: heartbeats meanwhile, p99", "ms", 2, ""),
    "scale_fence_heartbeat_max_ms": Figure("scale: heartbeats meanwhile, the worst", "ms", 1, ""),
    "scale_shutdown_ms": Figure("scale: a broker shut down, to the last record committed", "ms", 0, ""),
    "scale_shutdown_records": Figure("scale: partitions changed", "", 0, "", compared=False),
    "scale_shutdown_heartbeat_p50_ms": Figure("scale: heartbeats meanwhile, p50", "ms", 2, ""),
    "scale_shutdown_heartbeat_p99_ms": Figure("scale: heartbeats meanwhile, p99", "ms", 2, ""),
    "scale_shutdown_heartbeat_max_ms": Figure("scale: heartbeats meanwhile, the worst", "ms", 1, ""),
    "scale_bring_up_mb_s": Figure("scale: a snapshot fetched by a new controller", "MB/s", 0, "", True),
    "scale_bring_up_other_mb_s": Figure(
        "scale: the same by one of the other kind", "MB/s", 0, "", True, compared=False
    ),
    "scale_bring_up_peak_rss_mib": Figure(
        "scale: the most memory of its server", "MiB", 0, "", compared=False
    ),
    "scale_stalls": Figure("scale: loop stalls over 10 ms", "", 0, ""),
    "scale_longest_hold_ms": Figure("scale: the longest", "ms", 1, ""),
    "clients_metadata_first_ms": Figure("clients: Metadata of 10,000 topics x 10, the first", "ms", 0, "1x"),
    "clients_metadata_first_cpu_ms": Figure("clients: the same, CPU", "ms", 0, ""),
    "clients_metadata_tenth_ms": Figure("clients: the same, the tenth", "ms", 0, "1x"),
    "clients_metadata_tenth_cpu_ms": Figure("clients: the same, CPU", "ms", 0, ""),
    "clients_metadata_one_per_cpu_s": Figure("clients: Metadata of one topic per CPU s", "", 0, "2x", True),
    "clients_parked_mib": Figure("clients: 10,000 consumers parked, memory", "MiB", 0, "", compared=False),
    "clients_wake_one_of_few_us": Figure(
        "clients: CPU of waking one, of 10 parked", "us", 0, "", compared=False
    ),
    "clients_wake_one_of_many_us": Figure("clients: the same, of 10,000", "us", 0, "", compared=False),
    "clients_log_mb_s": Figure(
        "clients: the metadata log read by one consumer", "MB/s", 0, "", True, compared=False
    ),
    "clients_log_mb_per_cpu_s_of_both": Figure(
        "clients: the same per CPU second of server and consumer", "MB", 0, "", True, compared=False
    ),
    "clients_show_s": Figure(
        "clients: kraftd show of a million partitions as of an offset, wall", "s", 2, "", compared=False
    ),
    "clients_show_cpu_s": Figure("clients: the same, CPU", "s", 2, "", compared=False),
    "whole_start_wall_ms": Figure("whole Kafka: start to the first record, wall", "ms", 0, "12x"),
    "whole_start_cpu_ms": Figure("whole Kafka: the same, CPU", "ms", 0, "20x"),
    "whole_idle_rss_mib": Figure("whole Kafka: idle, resident memory", "MiB", 0, "60 MiB at most"),
    "whole_idle_cpu_percent": Figure("whole Kafka: idle, CPU", "% of a core", 2, "0.3 % at most"),
    "whole_produce_1_us": Figure("whole Kafka: CPU of a Produce of one record", "us", 0, "2.5x"),
    "whole_produce_10_us": Figure("whole Kafka: the same, 10 records", "us", 0, "2.5x"),
    "whole_produce_16_kib_us": Figure("whole Kafka: the same, 16 KiB", "us", 0, "2x"),
    "whole_produce_1_mib_us": Figure("whole Kafka: the same, 1 MiB", "us", 0, "1x"),
    "whole_first_acknowledged_p50_ms": Figure(
        "whole Kafka: an early record acknowledged by all, p50", "ms", 2, "2x"
    ),
    "whole_first_acknowledged_p99_ms": Figure("whole Kafka: the same, p99", "ms", 2, "2x"),
    "whole_first_seen_p50_ms": Figure("whole Kafka: one of them seen by a consumer, p50", "ms", 2, "2x"),
    "whole_first_seen_p99_ms": Figure("whole Kafka: the same, p99", "ms", 2, "2x"),
    "whole_acknowledged_p50_ms": Figure("whole Kafka: one after a long load, p50", "ms", 2, "2x"),
    "whole_acknowledged_p99_ms": Figure("whole Kafka: the same, p99", "ms", 2, "2x"),
    "whole_seen_p50_ms": Figure("whole Kafka: one of them seen by a consumer, p50", "ms", 2, "2x"),
    "whole_seen_p99_ms": Figure("whole Kafka: the same, p99", "ms", 2, "2x"),
    "whole_producer_perf_mb_s": Figure("whole Kafka: producer-perf", "MB/s", 0, "1x", True),
    "whole_producer_perf_cpu_s_per_gb": Figure("whole Kafka: the same, CPU of a GB", "s", 2, ""),
    "whole_consumer_perf_mb_s": Figure("whole Kafka: consumer-perf", "MB/s", 0, "1x", True),
    "whole_consumer_perf_cpu_s_per_gb": Figure("whole Kafka: the same, CPU of a GB", "s", 2, "1.5x"),
    "whole_idle_partitions_mib": Figure("whole Kafka: 10,000 idle partitions, memory", "MiB", 0, "35 MiB"),
    "whole_parked_mib": Figure("whole Kafka: 10,000 consumers that wait, memory", "MiB", 0, "100 MiB"),
    "whole_session_fetch_us": Figure(
        "whole Kafka: CPU of a fetch in a session of 10,000 partitions, 10 with records",
        "us",
        0,
        "20x",
    ),
    "coordinators_heartbeats_per_cpu_s": Figure(
        "coordinators: heartbeats of classic groups per CPU second", "", 0, "2.5x", True
    ),
    "coordinators_consumer_heartbeats_per_cpu_s": Figure(
        "coordinators: the same of consumer groups", "", 0, "2.5x", True
    ),
    "coordinators_commits_per_cpu_s": Figure(
        "coordinators: commits of one partition per CPU second", "", 0, "2.5x", True
    ),
    "coordinators_transaction_p50_ms": Figure(
        "coordinators: a transaction of 10 records, p50", "ms", 2, "2x"
    ),
    "coordinators_transaction_p99_ms": Figure("coordinators: the same, p99", "ms", 2, ""),
    "coordinators_transaction_in_a_row_p50_ms": Figure(
        "coordinators: a transaction right after the last one, p50", "ms", 2, "2x"
    ),
    "coordinators_transaction_in_a_row_p99_ms": Figure("coordinators: the same, p99", "ms", 2, ""),
    "coordinators_load_cpu_s": Figure("coordinators: 100,000 commits loaded, CPU", "s", 2, "5x"),
    "coordinators_classic_settles_s": Figure("coordinators: a classic group of 1,000 settles", "s", 2, "2x"),
    "coordinators_classic_settles_cpu_s": Figure("coordinators: the same, CPU", "s", 2, "2x"),
    "coordinators_consumer_settles_s": Figure(
        "coordinators: a consumer group of 1,000 settles", "s", 2, "2x"
    ),
    "coordinators_consumer_settles_cpu_s": Figure("coordinators: the same, CPU", "s", 2, "2x"),
    "compaction_cpu_s": Figure("compaction of 1 GiB, a tenth of the keys live: CPU", "s", 1, "1x"),
    "compaction_wall_s": Figure("compaction: the same, wall", "s", 1, ""),
    "compaction_left_percent": Figure("compaction: what is left", "%", 1, "", compared=False),
    "compaction_fetch_p99_ms": Figure(
        "compaction: fetches of another topic beside it, p99", "ms", 2, "10 ms"
    ),
    "replication_acknowledged_p50_ms": Figure(
        "replication: one record acknowledged by all three, p50", "ms", 2, "1x"
    ),
    "replication_acknowledged_p99_ms": Figure("replication: the same, p99", "ms", 2, ""),
    "replication_leader_1_us": Figure(
        "replication: CPU of the leader by record, one a request", "us", 1, "1.5x"
    ),
    "replication_leader_1_per_s": Figure("replication: the same, requests per second", "", 0, "", True),
    "replication_leader_16_kib_us": Figure("replication: the same, 16 KiB a request, CPU", "us", 2, "1.5x"),
    "replication_leader_16_kib_per_s": Figure("replication: the same, requests per second", "", 0, "", True),
    "replication_follower_16_kib_s_per_gb": Figure(
        "replication: CPU of a follower of a GB, batches of 16 KiB", "s", 2, "1.5x"
    ),
    "replication_follower_16_kib_mb_s": Figure("replication: the same, rate", "MB/s", 0, "", True),
    "replication_follower_1_mib_s_per_gb": Figure(
        "replication: CPU of a follower of a GB, batches of 1 MiB", "s", 2, "1.5x"
    ),
    "replication_follower_1_mib_mb_s": Figure("replication: the same, rate", "MB/s", 0, "", True),
    "replication_idle_cpu_percent": Figure(
        "replication: a follower of 10,000 idle partitions, CPU", "% of a core", 2, "5x"
    ),
    "replication_idle_rss_mib": Figure("replication: the same, resident memory", "MiB", 0, ""),
    "replication_killed_first_s": Figure(
        "replication: leader of 1,000 killed, to a write, among stock brokers", "s", 2, "1x"
    ),
    "replication_killed_last_s": Figure("replication: the same, to a write on each", "s", 2, "1x"),
    "replication_killed_alone_first_s": Figure(
        "replication: leader of 1,000 killed, to a write, among its kind", "s", 2, "1x"
    ),
    "replication_killed_alone_last_s": Figure("replication: the same, to a write on each", "s", 2, "1x"),
    "replication_many_partitions": Figure("replication: partitions of a broker", "", 0, "", compared=False),
    "replication_many_stop_s": Figure("replication: that broker, clean stop", "s", 1, ""),
    "replication_many_start_s": Figure("replication: the same, clean start, wall", "s", 1, "5x"),
    "replication_many_start_cpu_s": Figure("replication: the same, CPU", "s", 1, ""),
    "replication_many_killed_start_s": Figure("replication: the same, start after kill -9, wall", "s", 1, ""),
    "replication_many_killed_start_cpu_s": Figure("replication: the same, CPU", "s", 1, ""),
    "replication_many_rss_mib": Figure("replication: the same, resident memory", "MiB", 0, "8x"),
    "replication_many_idle_cpu_percent": Figure("replication: the same, idle CPU", "% of a core", 2, ""),
    "replication_many_followed_partitions": Figure(
        "replication: partitions of a leader with a follower of its kind", "", 0, "", compared=False
    ),
    "replication_many_followed_write_s": Figure(
        "replication: a record to each, acknowledged by both", "s", 1, ""
    ),
    "replication_many_leader_cpu_percent": Figure("replication: that leader, idle CPU", "% of a core", 2, ""),
    "replication_many_follower_cpu_percent": Figure(
        "replication: that follower, idle CPU", "% of a core", 2, "5x"
    ),
    "replication_many_follower_rss_mib": Figure("replication: the same, resident memory", "MiB", 0, ""),
    "replication_many_failover_s": Figure(
        "replication: that leader killed, to a write on each", "s", 1, "1x"
    ),
    "replication_many_rejoin_s": Figure(
        "replication: it is started again, until all are in sync", "s", 1, ""
    ),
    "codec_fetch_request_decode_us": Figure("codec: Fetch request v18 of one partition, decode", "us", 3, ""),
    "codec_fetch_request_encode_us": Figure("codec: Fetch request v17 of one partition, encode", "us", 3, ""),
    "codec_fetch_1000_decode_us": Figure("codec: Fetch request of 1,000 partitions, decode", "us", 0, ""),
    "codec_heartbeat_decode_us": Figure("codec: BrokerHeartbeat request, decode", "us", 3, ""),
    "codec_metadata_decode_ms": Figure("codec: Metadata response of 100,000 partitions, decode", "ms", 1, ""),
    "codec_metadata_encode_ms": Figure("codec: the same, encode", "ms", 1, ""),
    "codec_record_decode_us": Figure("codec: PartitionRecord out of a checked batch, decode", "us", 3, ""),
    "codec_record_encode_us": Figure("codec: PartitionRecord into a batch, encode", "us", 3, ""),
    "codec_crc_mb_s": Figure("codec: CRC32C of a MiB", "MB/s", 0, "", True),
}
