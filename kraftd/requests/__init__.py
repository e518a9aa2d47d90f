"""Requests of every listener: frames become calls, calls reach handlers, answers leave.

Public: `registry` (Route, Registry: which APIs a listener serves), `boundary` (Boundary: where
calls are authenticated, authorized, guarded and counted), `call`, `refusals`, `stats`, `outbox`, `effects`
and `events`. Driven by a node that owns an outbox and a boundary:

    registry = Registry([Route(ApiKey.METADATA, DESCRIBE, TOPIC, load)])
    boundary = Boundary(registry, outbox)
    boundary.take_in(FramesReceived(...))     # a handler calls boundary.answer, refuse or, later, send
    effects = outbox.take()                   # for the runtime to perform

No IO, and nothing of any node: a controller's handlers are in `controller_node`.
"""
