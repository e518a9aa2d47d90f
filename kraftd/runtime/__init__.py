"""The daemon: loop, clock, fsync executor, effect runner, start and stop."""
