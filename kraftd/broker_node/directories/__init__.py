"""The log directories of a broker: what is in them, what moves between them, and which take no replicas."""
