"""The decision on each broker or admin request: (image, request) -> (records, answer)."""
