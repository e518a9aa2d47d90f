"""The partitions that this broker hosts: opened, led, followed, written and read as the metadata says."""
