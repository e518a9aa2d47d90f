"""One run of a replica or of a whole controller, on simulated files, network and threads."""
