"""What any node with an image answers: Metadata, configs, the cluster, and requests that it forwards."""
