"""Brokers beside the quorum of a world, and what goes through them: producers, and members of groups.

`broker_side` runs the daemon's broker node on simulated ports; `traffic` carries its clients' requests.
"""
