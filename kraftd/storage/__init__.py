"""Files on disk, byte-compatible with Apache Kafka 4.3."""
