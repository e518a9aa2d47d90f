"""The commands of `kraftd-spark`, one module each."""
