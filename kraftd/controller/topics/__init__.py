"""Topics: creation, deletion, more partitions, names and placement."""
