"""The host's code in a world of simulated time, network and disks; `kraftd sim` runs it.

    world = World(seed); world.run()      # raises Violation if an invariant does not hold
    outcome = run_seed(seed)              # the same, with counts of what happened

`process` and `controller_process` are replicas, on the `ports` of virtual time; `cluster` has their hosts,
`network` their connections. `faults` and `disk_faults` are the nemesis, `workload` and `admin` the clients,
`operator` reads the process logs and follows their advice. `checkers` check the invariants of
docs/invariants.md. Everything is drawn from the seed (`rng`), so one seed is one history.

May import everything but `kraftd.runtime` and `kraftd.cli`.
"""
