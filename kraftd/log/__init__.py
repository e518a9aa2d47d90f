"""The log of a partition on disk, and the disks below it. Knows no metadata, no consensus, no message.

`partition_log.PartitionLog` is the log: append and read on the event loop, `sync` in a thread of its own.
`opening` opens its segments after a crash and keeps what it has read for the replay; `timestamps` finds
offsets by time; `reader` reads the log of another process. Below lie: `segment` (a file and its sparse
index), `tail` (the newest batches in memory), `epochs` (the first offset of each leader epoch), and
`pending_writes` (the work of the next sync). `disk` is the port to files, with `RealDisk`; `memory_disk` is
its twin, which crashes on demand.

    opened = OpenedSegments(disk, directory, settings, report); opened.load(FirstPass(settings))
    log = PartitionLog(disk, directory, settings, opened.segments, opened.epochs, start, opened.log_end)
    log.append(batches); log.sync(); log.read(offset, max_bytes)

May import: wire, types.
"""
