"""The node of a controller: decisions, standby, activation, and one file an API. No IO.

Public: `node` (Node), `effects`, `events`, `identity`, and `registration`'s SendToController. Driven by a
runtime or a simulation, one event at a time, from one thread:

    node = Node(identity, core, context, bootstrap, snapshot)
    for effect in node.step(event, now_ms):    # Started first; then frames, syncs, slices, deadlines
        perform(effect)                        # in this order: it is the order of durability
    call_again_at(node.deadline_ms())          # with DeadlineReached

Inside: `standing` says whether this node decides, `activation` changes that; `decisions` decides, through
`appending` and `long_decisions`; `following` keeps the image up to date with the log; `parked` holds answers
until a commit. `routes` lists the APIs, whose handlers use `node.boundary` and these parts.
"""
