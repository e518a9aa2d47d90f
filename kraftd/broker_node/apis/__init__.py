"""One file an API of a broker's listener: its contract, and the rule behind it."""
