"""Features and the controllers that register what they support."""
