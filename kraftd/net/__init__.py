"""Listeners and connections: bytes become frames, answers become bytes, limits hold. No loop of its own."""
