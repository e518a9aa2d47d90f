"""kraftd: a KRaft controller quorum and brokers for Apache Kafka clusters."""

__version__ = "0.1.0"
