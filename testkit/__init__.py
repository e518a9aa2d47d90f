"""Shared by tests, benchmarks and demos: Kafka processes, clusters, a wire client, log readers."""
