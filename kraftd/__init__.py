"""kraftd: a KRaft controller quorum for Apache Kafka brokers."""

__version__ = "0.1.0"
