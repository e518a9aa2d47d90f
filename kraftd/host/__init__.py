"""The machine side of a replica: performs effects, manages snapshots, writes downloads. It does IO only
through ports.

The ports (`ports`) are timer, threads, processes, wire, log, and the disk (`kraftd.log.disk`).
`kraftd.runtime` implements them with an event loop and an operating system, `kraftd.simulation` with virtual
time. Nothing else differs between the two, so the simulator runs the code that ships.

    storage = open_storage(disk, config, now_ms, new_directory_id)  # durable_state() is for the core
    executor = NodeExecutor(node, storage, SnapshotDownload(disk, storage.log), wire, ports)
    keeper = SnapshotKeeper(executor, core, replayed_to, processes, settings, executor.step); keeper.start()
    executor.step(Started()); ...; executor.step(FramesReceived(...))

`executor` keeps the order of durability and waits while the disk is full; `downloads` fetches a leader's
snapshot, `snapshot_reads` reads pieces of one for others; `checkpointing` and `scrubbing` run in child
processes.
"""
