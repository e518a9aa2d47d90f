"""The metadata directory of a controller: the files of Apache Kafka 4.3 in `metadata.log.dir`, byte for byte.

`formatting` makes one; `directory` locks and checks it. `recovery.open_log` opens its log after a crash and
returns a `metadata_log.MetadataLog`: a partition's log whose beginning snapshots replace. Each format of
`files` is a module: snapshots, the records of a new cluster, the small files. `files.found_files`, `lost_log`
and `sound_checkpoints` are phases of opening the log; `showing` turns all files into rows for people, and
`rescue` has what an operator does against a loss.

    directory = open_directory(disk, path, node_id, ...)
    log, report, control_batches, mark, download = open_log(disk, directory.partition_path)

May import: log, messages, wire, types.
"""
