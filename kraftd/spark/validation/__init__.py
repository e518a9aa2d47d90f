"""The checks of `kraftd-spark validate`: each returns the first difference that it finds, or None.

`comparisons` compares checkpoints and replicas with the log; `invariants` checks the rules of the controller
over the whole history. Both read logs of any size with Spark. `replayed_comparisons` and
`replayed_invariants` do the same without Spark, on a replay, and `divided_checks` on replays of groups of
partitions. `checks` lists the checks of each way, and `findings` words what they find.
"""
