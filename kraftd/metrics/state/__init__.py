"""What is so at one moment: the readings of the packages, surveys of partitions, the health of the node."""
