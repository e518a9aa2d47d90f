"""Brokers: registration, heartbeats, states, departures, producer ids."""
