"""The daemon: the ports of `kraftd.host` on an event loop, with threads, processes, sockets and signals.

`kraftd start` calls `daemon.run(config)`, which binds, opens the directory, builds the node, serves and
stops. `runner.Runner` is the host's executor on an asyncio loop, and measures its steps. `threads`,
`children` and `connections.wire` are the ports. `checkpoint_fetch` fetches a checkpoint that is missing,
before the node is built. `peers` sends the node's own requests; `security` keeps certificates and keys fresh;
`reporting` has the log, the audit stream and the metrics listener.

May import everything but `kraftd.simulation` and `kraftd.cli`.
"""
