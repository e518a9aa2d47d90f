"""The coordinators of groups, transactions and share state, each beside the partitions of its topic."""
