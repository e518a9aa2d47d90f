"""Where the commands read a cluster's records from: files, a running quorum, or a client listener.

`source` has the interface, Source, and the limit up to which a command reads. `files` implements it for
directories and files, `quorum` for controllers and client listeners.
"""
