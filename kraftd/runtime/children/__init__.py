"""The daemon's child processes: one makes checkpoints, one checks the files of the log."""
