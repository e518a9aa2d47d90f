"""ACLs: creation, deletion and description, with Kafka's filters (KIP-290)."""
