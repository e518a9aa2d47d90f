"""The metadata image: what the records mean, replayed in offset order."""
