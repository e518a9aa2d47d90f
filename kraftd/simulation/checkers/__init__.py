"""The invariants (S1-S21), checked before every effect and after every step."""
