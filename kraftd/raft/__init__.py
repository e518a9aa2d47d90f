"""Consensus on the metadata log (KIP-595, 853, 996, 1166): events in, effects out, no IO and no clock.

core = RaftCore(config, durable_state, rng, fetches=Purgatory(), appends=Purgatory())
for effect in core.step(Started(), now_ms):  # carry the effects out in this order
    ...
due_ms = core.deadline_ms()                  # then: core.step(DeadlineReached(), due_ms)

Public are `core`, `config`, `events`, `effects`, `metrics` and, for reading, `log_view` and `quorum`. Every
other module handles one kind of event; `replica` has the state that they share. docs/raft.md has the map.
"""
