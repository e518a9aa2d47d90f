"""The daemon's configuration: Kafka's controller .properties, typed and checked."""
