"""Where the commands read a cluster's records from: files, a quorum, a client listener; one interface."""
