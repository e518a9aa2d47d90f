"""Connections from outside: accepted within the rates, TLS handshakes in a pool, logins, answers written."""
