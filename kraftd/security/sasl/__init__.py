"""Logins by SASL: its mechanisms, the states of a connection, and the texts and keys behind both."""
