"""The logs of ordinary partitions: appended by one write on the event loop, flushed by a thread.

    resources = LogResources(RealDisk())
    slices = open_data_log(resources, parent, topic, 0, settings, Found(clean=True), now_ms=now_ms)
    log, notes = finish(slices)
    log.append(views, batches, now_ms)
    log.read(offset, max_bytes, end_offset)
    job = log.begin_flush(); job.run(); log.end_flush(job, now_ms)

`data_log.DataLog` is the log, on `log_state`; `opening` opens it and `recovery` checks what an unclean stop
left. `retention` and `time_search` work on a log. Below lie: `segment`, `index_files` (search in files),
`reading` (whole batches, verified), `log_files`, `flushing`, `transaction_index`, `producer_snapshot`;
`resources` is what all logs share.

May import: wire, types, and the modules of kraftd.log.
"""
