"""The checks of `kraftd-spark validate`: each returns the first difference that it finds, or None.

`comparisons` compares checkpoints and replicas with the log; `invariants` checks the rules of the controller
over the whole history.
"""
