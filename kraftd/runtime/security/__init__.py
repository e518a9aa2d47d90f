"""The security of a daemon, assembled from its configuration; certificates, keys and tokens kept fresh."""
