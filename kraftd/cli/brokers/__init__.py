"""The commands that ask brokers: `produce`, `consume`, `groups`, and the options that they share."""
