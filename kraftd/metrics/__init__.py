"""Serves the packages' numbers over HTTP: Prometheus text, /healthz and /readyz."""
