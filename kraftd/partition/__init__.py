"""One ordinary partition, sans-IO: what it takes from producers, its offsets, epochs, producers and replicas.

Nothing here reads a clock or touches a file: times are arguments, and what the log must do is returned as
effects.
"""
