"""Decisions: made, appended, parked until they are committed; becoming active; periodic work."""
