"""Consensus (KIP-595, 853, 996): pure, events in, effects out."""
