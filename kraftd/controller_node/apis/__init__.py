"""The APIs of a controller listener, one file each."""
