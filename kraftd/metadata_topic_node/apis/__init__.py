"""The APIs by which clients read the metadata log as a topic, one file each."""
