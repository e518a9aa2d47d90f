"""Transactions at stock nodes and at kraftd's, side by side."""
