"""The node of a controller: decisions, standby, activation, and one file an API. No IO.

Public: `node` (Node), `effects`, `events`. Driven by a runtime or a simulation, one event at a time, from one
thread:

    node = Node(identity, core, context, controller_registry, bootstrap, snapshot)
    for effect in node.step(event, now_ms):    # Started first; then frames, syncs, slices, deadlines
        perform(effect)                        # in this order: it is the order of durability
    call_again_at(node.deadline_ms())          # with DeadlineReached

Inside: `deciding` decides, appends and holds answers until a commit; `deciding.decision_rights` says whether
this node decides, and `deciding.activation` changes that. `watching` reports what happened. `routes` lists
the APIs, whose handlers in `apis` use `node.boundary` and these parts. `replica` has the image.
"""
