"""The host's code in a world of simulated time, network and disks; `kraftd sim` runs it.

    world = World(seed); world.run()      # raises Violation if an invariant does not hold
    outcome = run_seed(seed)              # the same, with counts of what happened

`processes` are replicas, on ports of virtual time; `cluster` has their hosts. `faults` is the nemesis, `load`
the clients, `brokers` the brokers beside the quorum. `checkers` check the invariants of
docs/invariants.md. Everything is drawn from the seed (`randomness`), so one seed is one history.

May import everything but `kraftd.runtime` and `kraftd.cli`.
"""
