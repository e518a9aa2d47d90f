"""Kafka's metrics by name, with those of kraftd: each reads its value from the state of a moment."""
