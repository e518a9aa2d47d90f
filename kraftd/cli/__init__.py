"""The command line: parses arguments, calls the packages below, and reports failures in words and exit codes.

`main.kraftd` is the group of all commands; a module holds one command, or a few that belong together. A new
one is added in `main`. `storage` has the commands on a node's directories, `metadata` those that show a
cluster, `quorum` those about voters, `brokers` those that ask brokers, `doctor` the one that examines.

`failures` has the exit codes, `cluster_options` the options of commands that ask a cluster, `sources` where
records are read from, `tables` what people see. docs/commands.md lists the commands.
"""
