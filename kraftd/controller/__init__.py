"""What each broker or admin request means: (image, request) -> (records, answer)."""
