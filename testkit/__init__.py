"""What tests, benchmarks and demos share: Kafka as processes, clusters, a wire client, directories read."""
