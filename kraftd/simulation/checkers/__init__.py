"""The invariants S1 to S21, C1 to C10, D1 to D4 and L1 to L6 of docs/invariants.md, one group a module.

`checks.Checks` makes the checkers of a world; processes and clusters call it before every effect and after
every step. A checker raises `checker.Violation`, which names the broken invariant. `liveness` runs at the
end.
"""
