"""Parked fetches and incremental fetch sessions (KIP-227, KIP-1166)."""
