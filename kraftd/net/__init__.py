"""Listeners and connections: turn bytes into frames and answers into bytes, within limits. No event loop."""
