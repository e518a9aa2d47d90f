"""The other nodes of the cluster: requests to them, their addresses, and whether the leader answers."""
