"""Brokers: registration, heartbeats, fencing, controlled shutdown and producer ids (KIP-631, KIP-730,
KIP-841).

Public: `registration` and `producer_ids` have decisions for requests; `states` has those for heartbeats and
expired sessions. `transitions` changes the partitions of a broker whose state changes. `heartbeats` and
`departures` are the leader's soft state.
"""
