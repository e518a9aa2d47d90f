"""The state after disasters: survivors, backups, and the stock brokers that were attached."""
