"""SCRAM credentials of users (KIP-554)."""
