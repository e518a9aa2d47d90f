"""Perform the effects of nodes over ports, in order: of a core, a controller, a broker, an answering node."""
