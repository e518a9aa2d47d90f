"""Client quotas: their changes and descriptions (KIP-546, KIP-612), and the mutation quota (KIP-599)."""
