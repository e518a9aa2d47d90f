"""Snapshots between kraftd and Apache Kafka: each reads, serves and loads the other's."""
