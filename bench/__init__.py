"""The costs of kraftd's controller beside Apache Kafka's: same machine, same client code, same run."""
