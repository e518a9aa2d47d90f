"""What kraftd's controller costs beside Apache Kafka's: same machine, same client code, same run."""
