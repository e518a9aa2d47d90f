"""The image by replay, for every node: drives the consensus core, follows the log, publishes ACLs."""
