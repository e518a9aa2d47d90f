"""The values of replica.selector.class (KIP-392)."""

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
