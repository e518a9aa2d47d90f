"""The logs of a broker: opened, written, read, cleaned; and the producers that they name."""
