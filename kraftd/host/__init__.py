"""The machine side of a replica: performs effects, manages snapshots, writes downloads. It does IO only
through ports.

The ports (`ports`) are timer, threads, processes, wire, log, and the disk (`kraftd.log.disk`).
`kraftd.runtime` implements them with an event loop and an operating system, `kraftd.simulation` with virtual
time. Nothing else differs between the two, so the simulator runs the code that ships.

    storage = open_storage(disk, config, now_ms, new_directory_id)  # durable_state() is for the core
    executor = NodeExecutor(node, storage, SnapshotDownload(disk, storage.log), wire, ports)
    keeper = SnapshotKeeper(executor, core, replayed_to, processes, settings, executor.step); keeper.start()
    executor.step(Started()); ...; executor.step(FramesReceived(...))

`executors` keep the order of durability and wait while the disk is full. `snapshots` are written by a child
process, downloaded and read; `upkeep` says when, and checks files. `broker_logs` holds a broker's partitions.
"""
