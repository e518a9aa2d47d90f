"""The log directories of a broker (log.dirs): the logs in them, their checkpoints, and what becomes of a
directory that fails.

    directories = LogDirectories(LogResources(RealDisk()), [LogDirectory(path, directory_id)], settings_of)
    loader = LogLoader(directories, now_ms).load()
    log = directories.create(topic, partition, topic_id, now_ms)
    for job in directories.checkpoints_of(path): job.run()

`directories.LogDirectories` is what a broker holds, `log_loader` fills it at a start. Below lie `names` (of
directories), `offset_checkpoint` and `clean_shutdown` (files), and `jobs` (work for a thread).

May import: log, types.
"""
