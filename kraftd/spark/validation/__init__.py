"""The checks of `kraftd-spark validate`: each gives the first difference it finds, or None."""
