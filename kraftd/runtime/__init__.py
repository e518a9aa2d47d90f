"""The daemon: the ports of `kraftd.host` on an event loop, with threads, processes, sockets and signals.

`kraftd start` calls `daemon.run(config)`, which binds, opens the directory, builds the node, serves and
stops. `runner.Runner` is the host's executor on an asyncio loop, and measures its steps. `threads`,
`processes` and `wire` are the ports; `snapshot_writer` and `scrubber` the programs that run beside it.
`restoring` fetches a checkpoint that is missing before the node is built; `watch` serves metrics.

May import everything but `kraftd.simulation` and `kraftd.cli`.
"""
